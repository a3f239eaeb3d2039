package transcript

import "github.com/convlog/convlog/event"

// Joiner puts entries together: results under their calls, and pieces of one
// message. For that it holds entries back. It is fed one after the other, by one
// goroutine.
type Joiner struct {
	// Hold is how many entries are held back at most; 0 holds none.
	Hold int
	// Fold makes the pieces of one message one entry.
	Fold bool
	// Recorded shows the result that was recorded when a tool had run where no
	// message tells it.
	Recorded bool

	show    func(*Entry) error
	held    []*Entry
	waiting map[string]*Entry // for results, by call id
	// open is the message that the next one may be a piece of.
	open  *Entry
	turns turns
}

// NewJoiner makes a joiner that shows each entry once it is complete, or can be
// held no longer.
func NewJoiner(show func(*Entry) error) *Joiner {
	return &Joiner{show: show, waiting: map[string]*Entry{}}
}

// Add takes in the next entry. An error is one of show.
func (j *Joiner) Add(x *Entry) error {
	if x.IsMessage {
		j.answer(x)
		if j.Fold && x.isPieceOf(j.open) {
			j.wait(x, j.open)
			j.open.fold(x)
			return j.release(j.Hold)
		}
		j.wait(x, x)
	} else if j.Recorded {
		j.ran(x)
	}
	j.turns.take(x, j.last())
	j.held = append(j.held, x)
	j.begin(x)
	return j.release(j.Hold)
}

// begin ends the message before, if x is another one.
func (j *Joiner) begin(x *Entry) {
	if !j.Fold || !x.IsMessage || x.empty() {
		return
	}
	j.open = nil
	if x.Message.Group != "" {
		j.open = x
	}
}

func (j *Joiner) last() *Entry {
	if len(j.held) == 0 {
		return nil
	}
	return j.held[len(j.held)-1]
}

// answer moves the results of x under the calls that wait for them.
func (j *Joiner) answer(x *Entry) {
	rest := x.Message.Parts[:0:0]
	for _, part := range x.Message.Parts {
		caller := j.waiting[part.CallID]
		if part.Type != event.ToolResultPart || caller == nil || caller.Orphaned != x.Orphaned {
			rest = append(rest, part)
			continue
		}
		caller.Results[part.CallID] = Result{x.Event.Seq, x.Event.Timestamp, part}
		delete(j.waiting, part.CallID)
		x.answered++
	}
	x.Message.Parts = rest
}

// ran gives a call the result that was recorded when its tool had run. It stands
// until a message tells the result.
func (j *Joiner) ran(x *Entry) {
	t, ok, err := event.Decode[event.ToolCompletion](&x.Event)
	if caller := j.waiting[t.CallID]; ok && err == nil && caller != nil && caller.Orphaned == x.Orphaned {
		if len(t.Content) == 0 && t.Error != "" {
			t.Content = []event.Part{event.Text(t.Error)}
		}
		part := event.ToolResult(t.CallID, t.Name, t.Content...)
		part.IsError = t.IsError || t.Error != ""
		caller.Results[t.CallID] = Result{x.Event.Seq, x.Event.Timestamp, part}
	}
}

// wait notes the calls of a piece, which stand in the entry of the message.
func (j *Joiner) wait(piece, message *Entry) {
	for _, call := range piece.Message.ToolCalls() {
		if message.Results == nil {
			message.Results = map[string]Result{}
		}
		j.waiting[call.CallID] = message
	}
}

// release shows the entries that wait for nothing, and what is over the limit.
func (j *Joiner) release(most int) error {
	for len(j.held) > 0 {
		first := j.held[0]
		if len(j.held) <= most && (j.pending(first) || len(j.held) == 1 && most > 0) {
			return nil
		}
		j.held = j.held[1:]
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

// pending reports whether results, or further pieces, may still come.
func (j *Joiner) pending(x *Entry) bool {
	if x == j.open {
		return true
	}
	for _, call := range x.Message.ToolCalls() {
		if j.waiting[call.CallID] == x {
			return true
		}
	}
	return false
}

func (j *Joiner) forget(x *Entry) {
	if x == j.open {
		j.open = nil
	}
	for _, call := range x.Message.ToolCalls() {
		if j.waiting[call.CallID] == x {
			delete(j.waiting, call.CallID)
		}
	}
}

// Flush shows what is held.
func (j *Joiner) Flush() error { return j.release(0) }
