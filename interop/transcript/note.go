package transcript

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
)

// Note is what an event that is no message tells a reader.
type Note struct {
	// Words say it in one line.
	Words string
	// Text is what belongs below; empty if nothing does.
	Text string
	// Parts are what the model was given; nil if nothing was.
	Parts []event.Part
}

// Note says what the event of an entry that is no message tells; ok is false
// where it tells a reader nothing.
func (x *Entry) Note() (n Note, ok bool) {
	e := &x.Event
	if e.Redacted() {
		return Note{Words: string(e.Type.Name()) + " · redacted"}, e.Type.Name() != event.ProjectionSnapshotted
	}
	for _, tell := range tellers {
		if n, ok := tell(e); ok {
			return n, n.Words != ""
		}
	}
	return n, false
}

// tellers read the events that tell something, each those of one payload.
var tellers = []func(*event.Event) (Note, bool){
	telling(event.Decode[event.Compaction], compacted),
	telling(event.Decode[event.Fork], forked),
	telling(event.Decode[event.HeadMove], moved),
	telling(event.Decode[event.ContextEntry], given),
	telling(event.Decode[event.TurnCompletion], ended),
	telling(event.Decode[event.TurnHibernation], hibernated),
	telling(event.Decode[event.Handoff], handedOff),
	telling(event.Decode[event.External], arrived),
	telling(event.Decode[event.Child], child),
	telling(event.Decode[event.Artifact], made),
	telling(event.Decode[event.ApprovalRequest], asked),
	telling(event.Decode[event.ApprovalResolution], decided),
	telling(event.Decode[event.Escalation], retried),
	telling(event.Decode[event.Loss], lost),
}

// telling makes a teller of an accessor and of what is told of its payload.
func telling[T any](read func(*event.Event) (T, bool, error), tell func(*T) Note) func(*event.Event) (Note, bool) {
	return func(e *event.Event) (Note, bool) {
		p, ok, err := read(e)
		if !ok || err != nil {
			return Note{}, false
		}
		return tell(&p), true
	}
}

func compacted(c *event.Compaction) Note {
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

func forked(f *event.Fork) Note {
	return Note{Words: words(fmt.Sprintf("forked from %s at #%d", f.Parent, f.Seq), f.Label, f.Reason)}
}

func moved(m *event.HeadMove) Note {
	return Note{Words: words(fmt.Sprintf("went back to #%d", m.To), m.Label, m.Reason)}
}

func given(c *event.ContextEntry) Note {
	return Note{Words: words("context", c.Kind), Parts: c.Parts}
}

// ended tells of turns that did not end well.
func ended(t *event.TurnCompletion) Note {
	if t.Status == event.TurnStatusCompleted {
		return Note{}
	}
	reason := t.StopReason
	if reason == string(t.Status) {
		reason = ""
	}
	return Note{Words: words("turn "+string(t.Status), reason), Text: t.Error}
}

func hibernated(t *event.TurnHibernation) Note {
	return Note{Words: words("turn hibernated", t.Cursor.Kind, t.Reason)}
}

func handedOff(h *event.Handoff) Note {
	return Note{Words: words("handed to "+h.ToAgent, h.Reason), Text: string(h.Input)}
}

func arrived(x *event.External) Note {
	return Note{Words: words("input from outside", x.Source, x.Kind), Text: string(x.Value)}
}

func child(c *event.Child) Note {
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

func made(a *event.Artifact) Note {
	return Note{Words: words("artifact "+a.Name, a.Kind, a.MediaType, a.URI), Text: a.Description}
}

func asked(a *event.ApprovalRequest) Note {
	return Note{Words: words("approval asked", a.Name, a.Operation), Text: a.Prompt}
}

func decided(a *event.ApprovalResolution) Note {
	return Note{Words: words(string(a.Decision), a.By, a.Reason)}
}

func retried(x *event.Escalation) Note {
	return Note{Words: words("retried after an error", x.Scope, x.Target), Text: x.Error}
}

func lost(l *event.Loss) Note { return Note{Words: words("lost", l.Reason)} }
