package transcript

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// Note is what an event that is no message tells a reader.
type Note struct {
	// Words say it in one line.
	Words string
	// Text is what belongs below; empty if nothing does.
	Text string
	// Parts are what the model was given; nil if nothing was.
	Parts []eventlog.Part
}

// Note says what the event of an entry that is no message tells; ok is false
// where it tells a reader nothing.
func (x *Entry) Note() (n Note, ok bool) {
	e := &x.Event
	if e.Redacted() {
		return Note{Words: string(e.Type.Name()) + " · redacted"}, e.Type.Name() != eventlog.ProjectionSnapshotted
	}
	for _, tell := range tellers {
		if n, ok := tell(e); ok {
			return n, n.Words != ""
		}
	}
	return n, false
}

// tellers read the events that tell something, each those of one payload.
var tellers = []func(*eventlog.Event) (Note, bool){
	telling((*eventlog.Event).Compaction, compacted),
	telling((*eventlog.Event).Fork, forked),
	telling((*eventlog.Event).HeadMove, moved),
	telling((*eventlog.Event).ContextEntry, given),
	telling((*eventlog.Event).TurnCompletion, ended),
	telling((*eventlog.Event).TurnHibernation, hibernated),
	telling((*eventlog.Event).Handoff, handedOff),
	telling((*eventlog.Event).External, arrived),
	telling((*eventlog.Event).Child, child),
	telling((*eventlog.Event).Artifact, made),
	telling((*eventlog.Event).ApprovalRequest, asked),
	telling((*eventlog.Event).ApprovalResolution, decided),
	telling((*eventlog.Event).Escalation, retried),
	telling((*eventlog.Event).Loss, lost),
}

// telling makes a teller of an accessor and of what is told of its payload.
func telling[T any](read func(*eventlog.Event) (T, bool, error), tell func(*T) Note) func(*eventlog.Event) (Note, bool) {
	return func(e *eventlog.Event) (Note, bool) {
		p, ok, err := read(e)
		if !ok || err != nil {
			return Note{}, false
		}
		return tell(&p), true
	}
}

func compacted(c *eventlog.Compaction) Note {
	n := Note{Text: c.Summary}
	for i := range c.Entries {
		if m := c.Entries[i].Message; m != nil && c.Summary == "" {
			n.Text = strings.TrimSpace(n.Text + "\n\n" + m.Text())
		}
	}
	what := "context compacted"
	switch {
	case len(c.Cleared) > 0 && len(c.Entries) == 0 && c.Summary == "":
		what = interop.Count(int64(len(c.Cleared)), "tool result") + " cleared"
	case c.Covers.To > 0:
		what += fmt.Sprintf(": #%d to #%d", c.Covers.From, c.Covers.To)
	}
	tokens := ""
	if c.TokensBefore > 0 {
		tokens = interop.Thousands(c.TokensBefore) + " tokens before"
		if c.TokensAfter > 0 {
			tokens += ", " + interop.Thousands(c.TokensAfter) + " after"
		}
	}
	n.Words = words(what, c.Strategy, c.Trigger, tokens)
	return n
}

func forked(f *eventlog.Fork) Note {
	return Note{Words: words(fmt.Sprintf("forked from %s at #%d", f.Parent, f.Seq), f.Label, f.Reason)}
}

func moved(m *eventlog.HeadMove) Note {
	return Note{Words: words(fmt.Sprintf("went back to #%d", m.To), m.Label, m.Reason)}
}

func given(c *eventlog.ContextEntry) Note {
	return Note{Words: words("context", c.Kind), Parts: c.Parts}
}

// ended tells of turns that did not end well.
func ended(t *eventlog.TurnCompletion) Note {
	if t.Status == eventlog.TurnStatusCompleted {
		return Note{}
	}
	reason := t.StopReason
	if reason == string(t.Status) {
		reason = ""
	}
	return Note{Words: words("turn "+string(t.Status), reason), Text: t.Error}
}

func hibernated(t *eventlog.TurnHibernation) Note {
	return Note{Words: words("turn hibernated", t.Cursor.Kind, t.Reason)}
}

func handedOff(h *eventlog.Handoff) Note {
	return Note{Words: words("handed to "+h.ToAgent, h.Reason), Text: string(h.Input)}
}

func arrived(x *eventlog.External) Note {
	return Note{Words: words("input from outside", x.Source, x.Kind), Text: string(x.Value)}
}

func child(c *eventlog.Child) Note {
	name := c.ChildSessionID
	if name == "" {
		name = c.ChildID
	}
	n := Note{Words: words("child run "+string(c.State), c.Agent, name, c.Status, c.Reason), Text: c.Summary}
	for _, text := range []string{c.Error, c.Message, c.Task} {
		if n.Text == "" {
			n.Text = text
		}
	}
	return n
}

func made(a *eventlog.Artifact) Note {
	return Note{Words: words("artifact "+a.Name, a.Kind, a.MediaType, a.URI), Text: a.Description}
}

func asked(a *eventlog.ApprovalRequest) Note {
	return Note{Words: words("approval asked", a.Name, a.Operation), Text: a.Prompt}
}

func decided(a *eventlog.ApprovalResolution) Note {
	return Note{Words: words(string(a.Decision), a.By, a.Reason)}
}

func retried(x *eventlog.Escalation) Note {
	return Note{Words: words("retried after an error", x.Scope, x.Target), Text: x.Error}
}

func lost(l *eventlog.Loss) Note { return Note{Words: words("lost", l.Reason)} }
