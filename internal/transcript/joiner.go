package transcript

import (
	"slices"

	"github.com/convlog/convlog/event"
)

// Joiner moves results under their calls and joins the pieces of a message. It
// buffers entries for that. One goroutine may use it at a time.
type Joiner struct {
	// Window is the maximum number of buffered entries; 0 disables buffering.
	Window int
	// Fold joins the pieces of a message into one entry.
	Fold bool
	// Completions shows the result of a tool_completed event if no message has the
	// result.
	Completions bool

	show      func(*Entry) error
	buffer    []*Entry
	openCalls map[string]*Entry // entries whose calls have no result yet, by call id
	// early are the results that come before their calls, by call id.
	early map[string]earlyResult
	// group is the last message; the next event can be a piece of it.
	group *Entry
	turns turns
}

// earlyResult is a result without a call so far, and its entry.
type earlyResult struct {
	Result
	entry *Entry
}

// NewJoiner returns a Joiner that passes each entry to show when the entry is
// complete, or when the window is full.
func NewJoiner(show func(*Entry) error) *Joiner {
	return &Joiner{show: show, openCalls: map[string]*Entry{}, early: map[string]earlyResult{}}
}

// Add adds the next entry. It returns errors of show.
func (j *Joiner) Add(x *Entry) error {
	if x.IsMessage {
		j.moveResults(x)
		if j.Fold && x.isPieceOf(j.group) {
			j.addCalls(x, j.group)
			j.group.fold(x)
			return j.release(j.Window)
		}
		j.addCalls(x, x)
	} else if j.Completions {
		j.addCompletion(x)
	}
	j.turns.observe(x, j.last())
	j.buffer = append(j.buffer, x)
	j.openGroup(x)
	return j.release(j.Window)
}

// AddCost adds a cost to the entry that was added last. It returns false if this entry is
// not a message, or was shown already.
func (j *Joiner) AddCost(c event.Cost) bool {
	x := j.last()
	if x == nil || !x.IsMessage {
		return false
	}
	x.Cost = x.Cost.Add(c)
	return true
}

// openGroup ends the message before x, and keeps x for later pieces.
func (j *Joiner) openGroup(x *Entry) {
	if !j.Fold || !x.IsMessage || x.empty() {
		return
	}
	j.group = nil
	if x.Message.Group != "" {
		j.group = x
	}
}

func (j *Joiner) last() *Entry {
	if len(j.buffer) == 0 {
		return nil
	}
	return j.buffer[len(j.buffer)-1]
}

// moveResults moves the results in x to the entries of their calls.
func (j *Joiner) moveResults(x *Entry) {
	rest := x.Message.Parts[:0:0]
	for _, part := range x.Message.Parts {
		caller := j.openCalls[part.CallID]
		if part.Type != event.ToolResultPart || caller == nil || caller.Orphaned != x.Orphaned {
			if part.Type == event.ToolResultPart && caller == nil && slices.Contains(x.Event.Broken(), event.OrphanResult) {
				j.early[part.CallID] = earlyResult{Result{x.Event.Seq, x.Event.Timestamp, part}, x}
			}
			rest = append(rest, part)
			continue
		}
		caller.Results[part.CallID] = Result{x.Event.Seq, x.Event.Timestamp, part}
		delete(j.openCalls, part.CallID)
		x.movedResults++
	}
	x.Message.Parts = rest
}

// addCompletion gives a call the result of a tool_completed event. A result in a
// message replaces it.
func (j *Joiner) addCompletion(x *Entry) {
	t, ok, err := event.Decode[event.ToolCompletion](&x.Event)
	if caller := j.openCalls[t.CallID]; ok && err == nil && caller != nil && caller.Orphaned == x.Orphaned {
		if len(t.Content) == 0 && t.Error != "" {
			t.Content = []event.Part{event.Text(t.Error)}
		}
		part := event.ToolResult(t.CallID, t.Name, t.Content...)
		part.IsError = t.IsError || t.Error != ""
		caller.Results[t.CallID] = Result{x.Event.Seq, x.Event.Timestamp, part}
	}
}

// addCalls registers the calls of a piece. Their results belong to the entry of the
// whole message.
func (j *Joiner) addCalls(piece, message *Entry) {
	for _, call := range piece.Message.ToolCalls() {
		if message.Results == nil {
			message.Results = map[string]Result{}
		}
		if r, ok := j.early[call.CallID]; ok && r.entry.Orphaned == message.Orphaned {
			delete(j.early, call.CallID)
			message.Results[call.CallID] = r.Result
			r.entry.drop(call.CallID)
			continue
		}
		j.openCalls[call.CallID] = message
	}
}

// drop removes the result of a call from an entry, which other entries have now.
func (x *Entry) drop(call string) {
	x.Message.Parts = slices.DeleteFunc(slices.Clone(x.Message.Parts), func(p event.Part) bool {
		return p.Type == event.ToolResultPart && p.CallID == call
	})
	x.movedResults++
}

// release shows the entries that are complete, and all entries beyond the limit.
func (j *Joiner) release(most int) error {
	for len(j.buffer) > 0 {
		first := j.buffer[0]
		if len(j.buffer) <= most && (j.pending(first) || len(j.buffer) == 1 && most > 0) {
			return nil
		}
		j.buffer = j.buffer[1:]
		j.forget(first)
		if first.empty() {
			continue
		}
		if err := j.show(first); err != nil {
			return err
		}
	}
	return nil
}

// pending reports whether an entry can still get results or pieces.
func (j *Joiner) pending(x *Entry) bool {
	if x == j.group {
		return true
	}
	for _, call := range x.Message.ToolCalls() {
		if j.openCalls[call.CallID] == x {
			return true
		}
	}
	return false
}

func (j *Joiner) forget(x *Entry) {
	if x == j.group {
		j.group = nil
	}
	for _, call := range x.Message.ToolCalls() {
		if j.openCalls[call.CallID] == x {
			delete(j.openCalls, call.CallID)
		}
	}
}

// Open reports whether a call of a buffered entry has no result yet.
func (j *Joiner) Open() bool { return len(j.openCalls) > 0 }

// AddResults gives the results in x to the calls of buffered entries. x itself is not shown.
func (j *Joiner) AddResults(x *Entry) {
	if x.IsMessage {
		j.moveResults(x)
	}
}

// Flush shows all buffered entries.
func (j *Joiner) Flush() error { return j.release(0) }
