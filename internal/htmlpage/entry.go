package htmlpage

import (
	"cmp"
	"iter"
	"strings"
	"time"

	"github.com/yuin/goldmark"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/transcript"
)

// Entry is an entry of a conversation, as the template "entry" shows it.
type Entry struct {
	// Seq is 0 for a message that no event has, as a message of a compaction.
	Seq, Last int64
	// Kind is user, assistant, context, system, tool or note.
	Kind    string
	Who     string
	At      time.Time
	Details []string
	Marks   []string
	// Turn heads the entry if it starts a turn.
	Turn     *Turn
	Orphaned bool
	// Repeats leaves out the speaker.
	Repeats bool
	// Open reports that a call of the entry has no result yet.
	Open  bool
	Parts []Part
	// Link is the address of the page of the event; empty for none.
	Link string
}

// Turn heads the entries of a turn.
type Turn struct {
	ID     string // of the element
	Number int
	Facts  []string
	Failed bool
	// Resume is the command that goes on before the turn; empty for none.
	Resume string
}

// Part is a part of an entry.
type Part struct {
	// Kind is text, reasoning, call, output, media or note.
	Kind  string
	Text  Text
	Call  *Call
	Media *Media
	Name  string // of an output
}

// Call is a tool call with its result.
type Call struct {
	Name string
	// Gist says on one line what the call does, and Outcome how it ended.
	Gist, Outcome string
	// State is ok, failed, interrupted or open.
	State     string
	Unfolded  bool
	Arguments []Argument
	Diffs     []Diff
	// Result is the seq of the event with the result; 0 if no event has it. Anchor is Result in
	// the first call with a result of this event.
	Result   int64
	Anchor   int64
	Results  []Part
	Children []Child
}

// Argument is an argument of a call.
type Argument struct {
	Name string
	Text Text
}

// Child is the session of a sub-agent.
type Child struct {
	Title, State, Link string
	Facts              []string
}

// View renders the entries of one session.
type View struct {
	// Folder is the folder of the session: paths below it are short.
	Folder string
	// EventLink is the address of the page with all of an event, and BodyLink of a body. Nil
	// shows all on this page.
	EventLink func(seq int64) string
	BodyLink  func(event.BlobRef) string
	// Body reads a body; nil shows none that is not on the page.
	Body func(event.BlobRef) ([]byte, error)
	// Whole shortens no text, and Plain colours none.
	Whole, Plain bool
	// Changes are the changes of files by the id of their call.
	Changes map[string][]files.Change
	// Children are the sessions of sub-agents by the id of their call.
	Children map[string][]Child
	// Turn describes the turn that starts with an entry; nil knows the number only.
	Turn func(x *transcript.Entry) *Turn

	parser   goldmark.Markdown // nil until the first message
	coloured time.Duration     // the time that colours took
	anchored int64             // the newest Anchor
}

// NewChild describes a sub-agent by the newest event about it.
func NewChild(c *event.Child) Child {
	return Child{Title: transcript.Visible(cmp.Or(Brief(c.Agent+" "+c.Task, 100), Brief(c.ChildSessionID, 40), Brief(c.ChildID, 40))), State: string(c.State)}
}

// AddChildren adds the sub-agents of events, each with its newest state.
func (v *View) AddChildren(events iter.Seq2[event.Event, error], child func(*event.Child) Child) error {
	found := map[string]event.Child{}
	var order []string
	for e, err := range events {
		if err != nil {
			return err
		}
		c, ok, err := event.Decode[event.Child](&e)
		if !ok || err != nil || c.CallID == "" {
			continue
		}
		if _, seen := found[c.ChildID]; !seen {
			order = append(order, c.ChildID)
		}
		found[c.ChildID] = c
	}
	if v.Children == nil {
		v.Children = map[string][]Child{}
	}
	for _, id := range order {
		c := found[id]
		v.Children[c.CallID] = append(v.Children[c.CallID], child(&c))
	}
	return nil
}

// Entry makes the view of an entry; nil if readers need no note of the event.
func (v *View) Entry(x *transcript.Entry) *Entry {
	e := &Entry{Seq: x.Event.Seq, Last: x.Last, At: event.Dated(x.Event.Timestamp), Marks: x.Marks(), Orphaned: x.Orphaned}
	e.Link = v.link(e.Seq)
	if x.StartsTurn {
		e.Turn = v.turn(x)
	}
	if !x.IsMessage {
		return v.note(e, x)
	}
	e.Kind, e.Who, e.Details = kindOf(x), transcript.Visible(cmp.Or(x.Message.Model, x.Speaker())), v.details(x)
	for i := range x.Message.Parts {
		if p := &x.Message.Parts[i]; v.Whole || !isBlank(p) {
			e.Parts = append(e.Parts, v.part(p, x, e))
		}
	}
	return e
}

// link is the address of the page of an event; empty if there is no page or no event.
func (v *View) link(seq int64) string {
	if v.EventLink == nil || seq == 0 {
		return ""
	}
	return v.EventLink(seq)
}

// isBlank reports whether a part is an empty text, or reasoning that the provider withheld.
func isBlank(p *event.Part) bool {
	return (p.Type == event.TextPart || p.Type == event.ReasoningPart) && strings.TrimSpace(p.Text) == ""
}

// Again leaves the speaker out of an entry, because the entry before it has the same one.
func (e *Entry) Again(before *Entry) {
	e.Repeats = before != nil && e.Turn == nil && e.Kind == "assistant" && before.Kind == e.Kind && e.Who == before.Who
}

func (v *View) turn(x *transcript.Entry) *Turn {
	if v.Turn != nil {
		if t := v.Turn(x); t != nil {
			return t
		}
	}
	return NewTurn(x)
}

// NewTurn heads the turn that starts with an entry.
func NewTurn(x *transcript.Entry) *Turn {
	return &Turn{ID: "turn-" + itoa(x.Event.Seq), Number: x.Turn}
}

// note is an entry that is not a message.
func (v *View) note(e *Entry, x *transcript.Entry) *Entry {
	if c, ok, err := event.Decode[event.Child](&x.Event); ok && err == nil && len(v.Children[c.CallID]) > 0 && c.CallID != "" {
		return nil // the call shows it
	}
	n, ok := x.Note()
	if !ok {
		return nil
	}
	e.Kind, e.Who = "note", transcript.Visible(n.Line())
	if n.Text != "" {
		e.Parts = append(e.Parts, Part{Kind: "output", Text: v.text(n.Text, "", e.Link)})
	}
	for i := range n.Parts {
		e.Parts = append(e.Parts, v.part(&n.Parts[i], nil, e))
	}
	return e
}

func kindOf(x *transcript.Entry) string {
	switch role := x.Message.Role; {
	case x.IsContext():
		return "context"
	case role == event.User, role == event.Assistant, role == event.Tool:
		return string(role)
	}
	return "system"
}

// details are the details of a message without its time and its model. Unless the page is
// whole, they have no tokens but the output.
func (v *View) details(x *transcript.Entry) (all []string) {
	m := &x.Message
	for _, d := range x.Details() {
		switch {
		case d == m.Model, d == transcript.Clock(x.Event.Timestamp):
		case d == transcript.Tokens(m.Usage) && !v.Whole:
			if m.Usage.OutputTokens > 0 {
				all = append(all, Compact(m.Usage.OutputTokens)+" out")
			}
		default:
			all = append(all, transcript.Visible(d))
		}
	}
	return all
}

func (v *View) part(p *event.Part, x *transcript.Entry, e *Entry) Part {
	switch p.Type {
	case event.TextPart:
		if x == nil || e.Kind == "tool" {
			return Part{Kind: "output", Text: v.text(p.Text, "", e.Link)}
		}
		return Part{Kind: "text", Text: v.prose(p.Text, e.Link)}
	case event.ReasoningPart:
		return Part{Kind: "reasoning", Text: v.prose(p.Text, e.Link)}
	case event.ToolCallPart, event.ServerToolCallPart:
		c := v.call(p, x, e.Link)
		e.Open = e.Open || c.State == "open"
		return Part{Kind: "call", Call: c}
	case event.ToolResultPart, event.ServerToolResultPart:
		return Part{Kind: "call", Call: v.loneResult(p, e)}
	case event.ImagePart, event.AudioPart, event.DocumentPart:
		return v.media(p, e.Link)
	}
	name := strings.TrimSpace(string(p.Type) + " " + p.Kind)
	return Part{Kind: "output", Name: transcript.Visible(name), Text: v.text(string(p.Value)+string(p.Raw), "json", e.Link)}
}
