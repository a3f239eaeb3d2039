// Package html writes a session as one self-contained HTML page. The page needs no
// script, no other file and no network. Images are embedded, long output is folded,
// and the color scheme follows the reader's system.
//
// All text of the session is escaped. The page's Content-Security-Policy allows only
// the style, the images and the sounds of the page.
package html

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/prices"
)

// Write writes a session as a page: turns, messages, calls with their results,
// reasoning, compactions and forks. eventlog.All().OnPath() writes
// the active path. A range of the whole session writes rewound events too, and marks them.
// The heading is of the whole session; the table estimates the costs of answers without
// one, and nil estimates nothing. Times are in UTC. link is the address of the page of a sub-agent,
// empty for none; nil links none.
//
// Write reads the session twice, and keeps a few messages in memory at a time. A
// missing session is eventlog.ErrNotFound. A nil log or writer is an error. If a body
// is missing, the page says so.
func Write(ctx context.Context, w io.Writer, log *eventlog.Log, session string, events eventlog.Range, table *prices.Table, link func(session string) string) error {
	if w == nil {
		return fmt.Errorf("write page of session %q: the writer is nil", session)
	}
	about, err := transcript.Load(ctx, log, session, table)
	if err != nil {
		return err
	}
	p := newPage(ctx, bufio.NewWriterSize(w, 64<<10), log)
	if link != nil {
		err := p.view.AddChildren(log.Read(ctx, session, events), func(c *event.Child) htmlpage.Child {
			x := htmlpage.NewChild(c)
			if c.ChildSessionID != "" {
				x.Link = link(c.ChildSessionID)
			}
			return x
		})
		if err != nil {
			return err
		}
	}
	p.head(&about)
	for x, err := range transcript.Read(ctx, log, session, events) {
		if err != nil {
			return err
		}
		if p.entry(x); p.err != nil {
			break
		}
	}
	p.foot(&about)
	if err := p.flush(); err != nil {
		return fmt.Errorf("write page of session %q: %w", session, err)
	}
	return nil
}
