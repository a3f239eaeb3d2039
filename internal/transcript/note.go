package transcript

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/event"
)

// Note is the text that readers see for an event that is not a message.
type Note struct {
	// Line is the summary, one line.
	Line string
	// Text is the longer text below the line; can be empty.
	Text string
	// Parts is the content that the model gets from the event; can be nil.
	Parts []event.Part
}

// Note returns the note of an entry that is not a message. ok is false if readers
// need no note of the event.
func (x *Entry) Note() (n Note, ok bool) {
	e := &x.Event
	if e.Redacted() {
		return Note{Line: string(e.Type.Name()) + " · redacted"}, e.Type.Name() != event.ProjectionSnapshotted
	}
	for _, note := range noteReaders {
		if n, ok := note(e); ok {
			return n, n.Line != ""
		}
	}
	return n, false
}

// noteReaders decode the events that have a note, one reader per payload type.
var noteReaders = []func(*event.Event) (Note, bool){
	noteOf(event.Decode[event.Compaction], compaction),
	noteOf(event.Decode[event.Fork], fork),
	noteOf(event.Decode[event.HeadMove], headMove),
	noteOf(event.Decode[event.ContextEntry], contextEntry),
	noteOf(event.Decode[event.TurnCompletion], turnCompletion),
	noteOf(event.Decode[event.TurnHibernation], hibernation),
	noteOf(event.Decode[event.Handoff], handoff),
	noteOf(event.Decode[event.External], external),
	noteOf(event.Decode[event.Child], child),
	noteOf(event.Decode[event.Artifact], artifact),
	noteOf(event.Decode[event.ApprovalRequest], approvalRequest),
	noteOf(event.Decode[event.ApprovalResolution], approvalResolution),
	noteOf(event.Decode[event.Escalation], escalation),
	noteOf(event.Decode[event.Loss], loss),
}

// noteOf combines a decoder and a function that makes the note of the payload.
func noteOf[T any](read func(*event.Event) (T, bool, error), note func(*T) Note) func(*event.Event) (Note, bool) {
	return func(e *event.Event) (Note, bool) {
		p, ok, err := read(e)
		if !ok || err != nil {
			return Note{}, false
		}
		return note(&p), true
	}
}

func compaction(c *event.Compaction) Note {
	n := Note{Text: c.Summary}
	for i := range c.Entries {
		if m := c.Entries[i].Message; m != nil && c.Summary == "" {
			n.Text = strings.TrimSpace(n.Text + "\n\n" + m.Text())
		}
	}
	line := "context compacted"
	switch {
	case len(c.Cleared) > 0 && len(c.Entries) == 0 && c.Summary == "":
		line = Count(int64(len(c.Cleared)), "tool result") + " cleared"
	case c.Covers.To > 0:
		line += fmt.Sprintf(": #%d to #%d", c.Covers.From, c.Covers.To)
	}
	tokens := ""
	if c.TokensBefore > 0 {
		tokens = Thousands(c.TokensBefore) + " tokens before"
		if c.TokensAfter > 0 {
			tokens += ", " + Thousands(c.TokensAfter) + " after"
		}
	}
	n.Line = join(line, c.Strategy, c.Trigger, tokens)
	return n
}

func fork(f *event.Fork) Note {
	return Note{Line: join(fmt.Sprintf("forked from %s at #%d", f.Parent, f.Seq), f.Label, f.Reason)}
}

func headMove(m *event.HeadMove) Note {
	return Note{Line: join(fmt.Sprintf("went back to #%d", m.To), m.Label, m.Reason)}
}

func contextEntry(c *event.ContextEntry) Note {
	return Note{Line: join("context", c.Kind), Parts: c.Parts}
}

// turnCompletion notes a turn that did not complete; a completed turn has an empty
// note.
func turnCompletion(t *event.TurnCompletion) Note {
	if t.Status == event.TurnStatusCompleted {
		return Note{}
	}
	reason := t.StopReason
	if reason == string(t.Status) {
		reason = ""
	}
	return Note{Line: join("turn "+string(t.Status), reason), Text: t.Error}
}

func hibernation(t *event.TurnHibernation) Note {
	return Note{Line: join("turn hibernated", t.Cursor.Kind, t.Reason)}
}

func handoff(h *event.Handoff) Note {
	return Note{Line: join("handed to "+h.ToAgent, h.Reason), Text: string(h.Input)}
}

func external(x *event.External) Note {
	return Note{Line: join("input from outside", x.Source, x.Kind), Text: string(x.Value)}
}

func child(c *event.Child) Note {
	name := c.ChildSessionID
	if name == "" {
		name = c.ChildID
	}
	n := Note{Line: join("child run "+string(c.State), c.Agent, name, c.Status, c.Reason), Text: c.Summary}
	for _, text := range []string{c.Error, c.Message, c.Task} {
		if n.Text == "" {
			n.Text = text
		}
	}
	return n
}

func artifact(a *event.Artifact) Note {
	return Note{Line: join("artifact "+a.Name, a.Kind, a.MediaType, a.URI), Text: a.Description}
}

func approvalRequest(a *event.ApprovalRequest) Note {
	return Note{Line: join("approval asked", a.Name, a.Operation), Text: a.Prompt}
}

func approvalResolution(a *event.ApprovalResolution) Note {
	return Note{Line: join(string(a.Decision), a.By, a.Reason)}
}

func escalation(x *event.Escalation) Note {
	return Note{Line: join("retried after an error", x.Scope, x.Target), Text: x.Error}
}

func loss(l *event.Loss) Note { return Note{Line: join("lost", l.Reason)} }
