package stats

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Summary describes a session in a list of sessions. Like Stats, it needs a read of all
// own events of the session.
type Summary struct {
	Stats
	// Title is the newest title, and Input the first text of a user or of an external
	// input. Both may be empty, or of any length.
	Title string `json:"title,omitzero"`
	Input string `json:"input,omitzero"`
	// Source is the format of an imported session, Agent and CWD its program and folder.
	// The newest event that names one counts.
	Source string `json:"source,omitzero"`
	Agent  string `json:"agent,omitzero"`
	CWD    string `json:"cwd,omitzero"`
	// Moves counts the rewinds of the session itself, and Orphaned its events off the
	// active path.
	Moves    int64 `json:"moves,omitzero"`
	Orphaned int64 `json:"orphaned,omitzero"`
	// First and Last are the earliest and the latest time of the events.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// HasRuns says that an agent claimed the session, or that the session got an input for one.
	HasRuns bool `json:"-"`
	// Err is the error of reading the session.
	Err error `json:"-"`
}

// loadSummary reads the own events of a session.
func loadSummary(ctx context.Context, log *eventlog.Log, session string, opts Options) (s Summary, listed listedRow, err error) {
	var names namer
	x := summarizer{counter: newCounter(ctx, log, session, opts)}
	for e, err := range log.Read(ctx, session, eventlog.All().Own().Transient()) {
		if err == nil {
			err = x.read(&e)
		}
		if err != nil {
			return Summary{}, listed, fmt.Errorf("count session %q: %w", session, err)
		}
		if names.n == 0 {
			listed.First = listedOf(&e)
		}
		names.add(&e)
		listed.Head, listed.Last = e.Head(), e.Timestamp
		listed.Bytes += int64(len(e.Line())) + 1
	}
	listed.Name, listed.Named = names.name()
	return x.done(listed.Head.Seq), listed, nil
}

// summarizer makes the summary of one session.
type summarizer struct {
	counter counter
	summary Summary
	tree    event.Tree
	scoped  event.Path // the events of path scope
}

func (x *summarizer) read(e *event.Event) error {
	s := &x.summary
	if s.First.IsZero() || e.Timestamp.Before(s.First) {
		s.First = e.Timestamp
	}
	if e.Timestamp.After(s.Last) {
		s.Last = e.Timestamp
	}
	if e.Type.Scope() == event.PathScope {
		x.addScoped(e.Seq)
	}
	if name := e.Type.Name(); !e.Copied() && (name == event.RunClaimed || name == event.ExternalInput) {
		s.HasRuns = true
	}
	if err := x.tree.Add(e); err != nil {
		return err
	}
	if p, ok, err := event.Decode[event.Session](e); ok && err == nil {
		if strings.TrimSpace(p.Title) != "" {
			s.Title = p.Title
		}
		s.Source, s.Agent, s.CWD = cmp.Or(p.Source.Format, s.Source), cmp.Or(p.Agent, s.Agent), cmp.Or(p.CWD, s.CWD)
	}
	if s.Input == "" {
		s.Input = InputText(e)
	}
	return x.counter.read(e.Effective())
}

func (x *summarizer) addScoped(seq int64) {
	if n := len(x.scoped) - 1; n >= 0 && x.scoped[n].To == seq-1 {
		x.scoped[n].To = seq
		return
	}
	x.scoped = append(x.scoped, event.Stretch{From: seq, To: seq})
}

func (x *summarizer) done(head int64) Summary {
	s := x.summary
	s.Stats, s.Moves = x.counter.done(), int64(len(x.tree))
	if len(x.tree) == 0 {
		return s
	}
	path := x.tree.Path(head)
	for _, stretch := range x.scoped {
		for seq := stretch.From; seq <= stretch.To; seq++ {
			if !path.Has(seq) {
				s.Orphaned++
			}
		}
	}
	return s
}

// InputText returns the text of a user message or of an external input. It is empty for
// other events, and if the text is blank.
func InputText(e *event.Event) (text string) {
	if m, ok, err := event.Decode[event.Message](e); ok && err == nil {
		if m.Role == event.User && !e.IsContext() {
			text = m.Text()
		}
	} else if x, ok, err := event.Decode[event.External](e); ok && err == nil && json.Unmarshal(x.Value, &text) != nil {
		return ""
	}
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}
