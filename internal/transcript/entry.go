// Package transcript prepares the events of a session for readers. It puts tool
// results under their calls, joins the pieces of a message, numbers the turns, and
// marks rewound events, and describes the events that are not messages. The exporters to
// HTML and Markdown and logtool use it.
package transcript

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Entry is a message with the results of its calls, or another event.
type Entry struct {
	// Event is the first event of the entry. Its data is the data of the message's
	// first piece.
	Event event.Event
	// Last is the seq of the message's last piece.
	Last int64
	// Message joins all pieces of the message, if IsMessage. Results that are in
	// Results are not in Message.
	Message   event.Message
	IsMessage bool
	// Results are the results of the message's calls, by call id.
	Results map[string]Result
	// Cost is the cost of all events of the entry.
	Cost event.Cost
	// Orphaned is true if the event was rewound and is not on the active path.
	Orphaned bool
	// StartsTurn is true if a turn starts with the entry. Turn is its number, as
	// fork.AtTurn counts.
	StartsTurn bool
	Turn       int
	// Label is an extra mark for the entry; see Marks.
	Label string

	isInput      bool // input of the user
	movedResults int  // number of results moved to the entries of their calls
}

// Result is the result of a call, with the seq and the time of its event.
type Result struct {
	Seq  int64
	At   time.Time
	Part event.Part
}

// OfHistory is the entry of a message of a history.
func OfHistory(e *projection.Entry) *Entry {
	x := &Entry{Message: e.Message, IsMessage: true, Label: cmp.Or(e.Made, e.Context)}
	x.Event.Seq = e.Seq
	return x
}

// NewEntry parses an event. A message that cannot be parsed becomes an entry without
// IsMessage.
func NewEntry(e *event.Event, orphaned bool) *Entry {
	x := &Entry{Event: *e, Last: e.Seq, Orphaned: orphaned, Cost: e.Cost}
	m, ok, err := event.Decode[event.Message](e)
	if !ok || err != nil {
		return x
	}
	x.Message, x.IsMessage = m, true
	if m.Role == event.User && !e.IsContext() {
		x.isInput = len(m.Parts) == 0 || len(m.ToolResults()) < len(m.Parts)
	}
	return x
}

// IsContext reports whether a program added the message in the user's name.
func (x *Entry) IsContext() bool { return x.IsMessage && x.Event.IsContext() }

// ContextSpeaker replaces the role in messages that a program added in the user's
// name.
const ContextSpeaker = "context"

// Speaker returns the role of a message, or ContextSpeaker.
func (x *Entry) Speaker() string {
	if x.IsContext() {
		return ContextSpeaker
	}
	return string(x.Message.Role)
}

// empty reports whether all parts of the message moved to other entries.
func (x *Entry) empty() bool { return x.IsMessage && x.movedResults > 0 && len(x.Message.Parts) == 0 }

// isPieceOf reports whether x is a later piece of the message in first.
func (x *Entry) isPieceOf(first *Entry) bool {
	m := &x.Message
	return first != nil && x.IsMessage && m.Group != "" && m.Group == first.Message.Group &&
		m.Role == first.Message.Role && x.Orphaned == first.Orphaned
}

// fold adds a later piece to the message.
func (x *Entry) fold(piece *Entry) {
	m, more := &x.Message, &piece.Message
	m.Parts = append(m.Parts, more.Parts...)
	if !more.Usage.IsZero() {
		m.Usage = more.Usage
	}
	if more.StopReason != "" {
		m.StopReason = more.StopReason
	}
	x.Cost, x.Last = x.Cost.Add(piece.Cost), piece.Last
}

// Details returns the known details of a message: time, model, tokens, cost, and the
// stop reason if it is unusual.
func (x *Entry) Details() (all []string) {
	m := &x.Message
	all = []string{Clock(x.Event.Timestamp), m.Model, Tokens(m.Usage), dollars(x.Cost)}
	if !slices.Contains(usualStops, m.StopReason) {
		all = append(all, m.StopReason)
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// usualStops are the stop reasons that Details leaves out.
var usualStops = []string{"end_turn", "stop", "stop_sequence", "tool_use", "tool_calls", "toolUse", "completed"}

// OrphanedMark marks a rewound entry.
const OrphanedMark = "orphaned"

// Marks returns warnings about an entry: broken conversation rules of an imported
// event, the label, and OrphanedMark.
func (x *Entry) Marks() (all []string) {
	if v, ok := x.Event.MetadataValue("broken"); ok {
		all = append(all, "broken: "+strings.Trim(strings.ReplaceAll(string(v), `"`, ""), "[]"))
	}
	if x.Label != "" {
		all = append(all, x.Label)
	}
	if x.Orphaned {
		all = append(all, OrphanedMark)
	}
	return all
}
