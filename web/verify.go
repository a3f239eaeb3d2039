package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/upkeep/verify"
)

// verifyPage shows whether the bytes of a session are as they were written. It reads the session
// only if asked: with check=now in the query.
var verifyPage = page{pattern: "/s/{session}/verify", template: "verify.html", tab: "Check", load: (*Handler).verify}

// verifyView is the page of a check.
type verifyView struct {
	*sessionHead
	Checked *checked // nil if the session was not checked since the start of the server
	Newer   int64    // events after the checked ones
	Defects []defectRow
	Notes   []defectRow
	// LeftDefects and LeftNotes are not on the page.
	LeftDefects, LeftNotes int64
}

// defectRow is a defect or a note.
type defectRow struct {
	eventlog.Defect
	Link string // of the event
}

// checked is the result of a check.
type checked struct {
	verify.Report
	At   time.Time
	Took time.Duration
}

// checks keep the results of the newest checks.
type checks struct {
	one sync.Mutex // a check at a time: it reads with all processors

	mu   sync.Mutex
	kept map[string]*checked
	ids  []string // by age
}

// mostChecks is the number of results in memory.
const mostChecks = 100

func (k *checks) get(session string) *checked {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[session]
}

func (k *checks) put(c *checked) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = map[string]*checked{}
	}
	if k.kept[c.Session] == nil {
		k.ids = append(k.ids, c.Session)
	}
	k.kept[c.Session] = c
	if len(k.ids) > mostChecks {
		delete(k.kept, k.ids[0])
		k.ids = k.ids[1:]
	}
}

// mostDefects is the most defects, and the most notes, of a page.
const mostDefects = 200

func (h *Handler) verify(r *http.Request) (view, error) {
	s, err := h.head(r)
	if err != nil {
		if s = h.damagedHead(r, err); s == nil {
			return view{}, err
		}
	}
	if r.URL.Query().Get("check") != "" {
		if _, err := h.check(r.Context(), s.ID); err != nil {
			return view{}, err
		}
	}
	v := verifyView{sessionHead: s, Checked: h.checks.get(s.ID)}
	if c := v.Checked; c != nil {
		v.Newer = max(0, s.Head-c.Head.Seq)
		v.Defects, v.LeftDefects = defectRows(c.Defects, c.MoreDefects)
		v.Notes, v.LeftNotes = defectRows(c.Notes, c.MoreNotes)
	}
	return view{title: "Check · " + s.Title, body: v}, nil
}

// damagedHead is the top of the page of a session that cannot be read because of err; nil if err
// does not say that.
func (h *Handler) damagedHead(r *http.Request, err error) *sessionHead {
	if !errors.Is(err, eventlog.ErrCorrupt) && !errors.Is(err, event.ErrVersion) {
		return nil
	}
	id := r.PathValue("session")
	s := &sessionHead{ID: id, Title: transcript.Visible(id), Command: "logtool verify " + id}
	s.Facts = []htmlpage.Link{{Name: "unreadable: " + transcript.Visible(err.Error())}}
	s.addTabs(h, r)
	return s
}

// check checks a session as the command verify does, and keeps the result.
func (h *Handler) check(ctx context.Context, session string) (*checked, error) {
	h.checks.one.Lock()
	defer h.checks.one.Unlock()
	begin := time.Now()
	report, err := verify.Session(ctx, h.log, session)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, eventlog.ErrNotFound) || listing.IsOutside(err) {
			return nil, err
		}
		report.Session, report.Defects = session, append(report.Defects, listing.Unreadable(session, err))
	}
	c := &checked{report, begin, time.Since(begin)}
	h.checks.put(c)
	return c, nil
}

func defectRows(all []eventlog.Defect, more int64) (rows []defectRow, left int64) {
	shown := all[:min(len(all), mostDefects)]
	for _, d := range shown {
		row := defectRow{Defect: d}
		row.Path, row.Detail, row.Rule = transcript.Visible(d.Path), transcript.Visible(htmlpage.Brief(d.Detail, 400)), transcript.Visible(d.Rule)
		if d.Seq > 0 && d.Session != "" {
			row.Link = eventLink(d.Session, d.Seq)
		}
		rows = append(rows, row)
	}
	return rows, int64(len(all)-len(shown)) + more
}

// badge is a fact about the newest check of a session; empty without a check.
func (h *Handler) badge(s *sessionHead) htmlpage.Link {
	c := h.checks.get(s.ID)
	if c == nil {
		return htmlpage.Link{}
	}
	x := htmlpage.Link{Name: "✓ checked to " + transcript.At(c.Head.Seq), Href: sessionPath(s.ID, "verify")}
	if n := c.Damaged(); n > 0 {
		x.Name = "✗ " + transcript.Count(n, "defect")
	}
	return x
}
