// Package transcript puts the events of a session in the order in which people
// read them: results under their calls, the pieces of one message joined, turns
// numbered, what was rewound marked. The exporters of readable formats are built
// on it.
package transcript

import (
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
)

// Entry is what is read as one: a message with the results of its calls, or
// another event.
type Entry struct {
	// Event is the first event of the entry. Its data are those of a message's
	// first piece.
	Event event.Event
	// Last is the seq of a message's last piece.
	Last int64
	// Message is the message, if IsMessage: all pieces joined, without the results
	// that stand under calls.
	Message   event.Message
	IsMessage bool
	// Results are those of the message's calls, by call id.
	Results map[string]Result
	// Cost is that of all events of the entry.
	Cost event.Cost
	// Orphaned: the event was rewound and is no part of the conversation.
	Orphaned bool
	// Begins says that a turn begins with the entry, and Turn its number, as
	// fork.AtTurn counts.
	Begins bool
	Turn   int
	// Label is what else there is to say of the entry.
	Label string

	asks     bool // the user says something
	answered int  // its results that stand under calls
}

// Result is the result of a call, and where it stands.
type Result struct {
	Seq  int64
	At   time.Time
	Part event.Part
}

// NewEntry reads an event. A message that cannot be read is none.
func NewEntry(e *event.Event, orphaned bool) *Entry {
	x := &Entry{Event: *e, Last: e.Seq, Orphaned: orphaned, Cost: e.Cost}
	m, ok, err := event.Decode[event.Message](e)
	if !ok || err != nil {
		return x
	}
	x.Message, x.IsMessage = m, true
	if m.Role == event.User {
		x.asks = len(m.Parts) == 0 || len(m.ToolResults()) < len(m.Parts)
	}
	return x
}

// IsContext reports whether a program said the message in the user's name.
func (x *Entry) IsContext() bool { return x.IsMessage && x.Event.IsContext() }

// ContextSpeaker stands in the place of a role where a program speaks in the user's
// name.
const ContextSpeaker = "context"

// Speaker is who says a message: its role, or ContextSpeaker.
func (x *Entry) Speaker() string {
	if x.IsContext() {
		return ContextSpeaker
	}
	return string(x.Message.Role)
}

// empty reports whether all that a message says stands elsewhere.
func (x *Entry) empty() bool { return x.IsMessage && x.answered > 0 && len(x.Message.Parts) == 0 }

// isPieceOf reports whether x is a further piece of the message of first.
func (x *Entry) isPieceOf(first *Entry) bool {
	m := &x.Message
	return first != nil && x.IsMessage && m.Group != "" && m.Group == first.Message.Group &&
		m.Role == first.Message.Role && x.Orphaned == first.Orphaned
}

// fold adds a further piece.
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

// Words are what is known about a message: when it was said, by which model, what
// it used and cost, and why the model stopped, where that is unusual.
func (x *Entry) Words() (all []string) {
	m := &x.Message
	all = []string{Clock(x.Event.Timestamp), m.Model, Tokens(m.Usage), dollars(x.Cost)}
	if !slices.Contains(usualStops, m.StopReason) {
		all = append(all, m.StopReason)
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// usualStops are the reasons to stop that say nothing to a reader.
var usualStops = []string{"end_turn", "stop", "stop_sequence", "tool_use", "tool_calls", "toolUse", "completed"}

// OrphanedMark stands behind what was rewound.
const OrphanedMark = "orphaned"

// Marks are what is unusual about an entry: the rules of conversation that an
// imported event breaks, its label, and that it was rewound.
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
