package transcript

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/projection"
)

// Note describes an event that is not a message. Its texts are not safe to display:
// see Visible.
type Note struct {
	// Name says what happened. It is empty if readers of a transcript need no note of
	// the event.
	Name string
	// Words are short facts about the event.
	Words []string
	// Text is the longer text below the line; can be empty.
	Text string
	// Parts is the content that the model gets from the event; can be nil.
	Parts []event.Part
}

// Line returns the name and the words on one line.
func (n *Note) Line() string {
	return strings.TrimRight(n.Name+" "+Join(n.Words...), ": ")
}

// Note returns the note of an entry that is not a message. ok is false if readers
// need no note of the event.
func (x *Entry) Note() (n Note, ok bool) {
	n = Describe(&x.Event)
	return n, n.Name != ""
}

// Describe returns the note of an event. An event of an unknown type, or with data
// that does not parse, is described by the members of its data.
func Describe(e *event.Event) Note {
	if e.Redacted() {
		return redacted(e)
	}
	for _, note := range notes {
		if n, ok := note(e); ok {
			n.Words = slices.DeleteFunc(n.Words, func(word string) bool { return word == "" })
			return n
		}
	}
	return members(e)
}

// notes describe the events of known types, one function per payload type.
var notes = []func(*event.Event) (Note, bool){
	noteOf(compaction), noteOf(fork), noteOf(headMove), noteOf(contextEntry), noteOf(handoff),
	noteOf(artifact), noteOf(escalation), noteOf(loss), noteOf(session), noteOf(snapshot),
	noteOf(turnCompletion), noteOf(hibernation), noteOf(resumption), noteOf(external), noteOf(child),
	noteOf(intent), noteOf(completion), noteOf(approvalRequest), noteOf(approvalResolution),
	noteOf(approvalCancelation), noteOf(wait), noteOf(claim), noteOf(release), noteOf(abort),
}

// noteOf decodes the payload of an event and describes it. ok is false for an event of
// another type.
func noteOf[T event.Payload](note func(*T) Note) func(*event.Event) (n Note, ok bool) {
	return func(e *event.Event) (Note, bool) {
		p, ok, err := event.Decode[T](e)
		if !ok || err != nil {
			return Note{}, false
		}
		return note(&p), true
	}
}

func redacted(e *event.Event) Note {
	n := Note{Words: []string{"redacted", prefixed("kept ", Gist(string(e.Kept())))}}
	if e.Type.Name() != event.ProjectionSnapshotted {
		n.Name = string(e.Type.Name()) + ":"
	}
	return n
}

// members describes an event by the members of its data: short ones are words, the
// others are text.
func members(e *event.Event) (n Note) {
	const most = 240
	var texts []string
	for _, a := range Arguments(e.Data) {
		switch {
		case a.Name == "extra", a.Name == "hash", a.Name == "event_id":
		case strings.Contains(a.Text, "\n") || utf8.RuneCountInString(a.Text) > most:
			texts = append(texts, a.Label()+a.Text)
		default:
			n.Words = append(n.Words, a.Label()+a.Text)
		}
	}
	n.Text = strings.Join(texts, "\n")
	return n
}

func compaction(c *event.Compaction) Note {
	n := Note{Name: "context compacted:", Text: c.Summary}
	for i := range c.Entries {
		if m := c.Entries[i].Message; m != nil && c.Summary == "" {
			n.Text = strings.TrimSpace(n.Text + "\n\n" + m.Text())
		}
	}
	covers, tokens := "", ""
	switch {
	case len(c.Cleared) > 0 && len(c.Entries) == 0 && c.Summary == "":
		covers = Count(int64(len(c.Cleared)), "tool result") + " cleared"
	case c.Covers.To > 0:
		covers = fmt.Sprintf("#%d to #%d", c.Covers.From, c.Covers.To)
	}
	if c.TokensBefore > 0 {
		tokens = Thousands(c.TokensBefore) + " tokens before"
		if c.TokensAfter > 0 {
			tokens += ", " + Thousands(c.TokensAfter) + " after"
		}
	}
	n.Words = []string{covers, c.Strategy, c.Trigger, tokens}
	return n
}

func fork(f *event.Fork) Note {
	return Note{Name: "forked", Words: []string{"from " + f.Parent + " at " + At(f.Seq), f.Label, f.Reason}}
}

func headMove(m *event.HeadMove) Note {
	return Note{Name: "went back", Words: []string{"to " + At(m.To), m.Label, m.Reason}}
}

func contextEntry(c *event.ContextEntry) Note {
	return Note{Name: "context:", Words: []string{c.Kind}, Parts: c.Parts}
}

func handoff(h *event.Handoff) Note {
	return Note{Name: "handed", Words: []string{"to " + h.ToAgent, h.Reason}, Text: string(h.Input)}
}

func artifact(a *event.Artifact) Note {
	name := a.Name
	if name == "" {
		name = a.ArtifactID
	}
	if a.Removed {
		return Note{Name: "artifact removed:", Words: []string{name}}
	}
	return Note{Name: "artifact:", Words: []string{name, a.Kind, a.MediaType, a.URI}, Text: a.Description}
}

func escalation(x *event.Escalation) Note {
	return Note{Name: "retried after an error:", Words: []string{x.Scope, x.Target}, Text: x.Error}
}

func loss(l *event.Loss) Note { return Note{Name: "lost:", Words: []string{l.Reason}} }

// session describes the start or an update of a session. Readers see its facts in the
// heading of the transcript.
func session(s *event.Session) (n Note) {
	add := func(name, text string) {
		if text != "" {
			n.Words = append(n.Words, name+": "+text)
		}
	}
	add("title", s.Title)
	add("agent", s.Agent)
	add("cwd", s.CWD)
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		if text := s.Labels[name]; text != nil {
			add(name, *text)
		} else {
			add(name, "removed")
		}
	}
	add("source", strings.Join(strings.Fields(s.Source.Format+" "+s.Source.Version+" "+s.Source.Path), " "))
	if p := s.Parent; p.SessionID != "" {
		text := p.SessionID
		if p.Seq > 0 {
			text += " " + At(p.Seq)
		}
		if p.CallID != "" {
			text += fmt.Sprintf(" call %q", p.CallID)
		}
		add("run of", text)
	}
	return n
}

// snapshot describes a snapshot by its projection, its last event and its size.
func snapshot(s *event.Snapshot) Note {
	words := []string{s.Projection + " to " + At(s.Seq)}
	members, err := rawjson.Members(s.State)
	if err == nil && s.Projection == projection.Session().Name && len(members) > 0 {
		words = append(words, Count(int64(len(members)), "projection"))
	}
	switch {
	case s.IsMark():
		words = append(words, "a mark without a state")
	case len(s.State) > 0:
		words = append(words, Size(int64(len(s.State))))
	default:
		words = append(words, Size(s.Body.Bytes)+" in a blob")
	}
	return Note{Words: append(words, s.Trigger, s.Reason)}
}

// prefixed is a prefix and a text; empty if the text is empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
