package transcript

import (
	"context"
	"fmt"
	"iter"

	"github.com/convlog/convlog/eventlog"
)

// Options say what is read. The zero value reads the active path.
type Options struct {
	// All reads the whole session, and marks what is not on the active path.
	All bool
}

// held is how many entries are held back at most, to put results under their
// calls.
const held = 200

// Read yields the entries of a session, oldest first, a fork with what it shares.
// It holds a bounded number of events in memory. The entries are the caller's.
func Read(ctx context.Context, log *eventlog.Log, session string, o Options) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		r := reader{yield: yield, waiting: map[string]*Entry{}}
		for x, err := range entries(ctx, log, session, o) {
			if err != nil {
				yield(nil, fmt.Errorf("read session %q: %w", session, err))
				return
			}
			if !r.take(x) {
				return
			}
		}
		r.done()
	}
}

// entries yields an entry for each event.
func entries(ctx context.Context, log *eventlog.Log, session string, o Options) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		if !o.All {
			for e, err := range log.ActivePath(ctx, session) {
				if !yield(newEntry(&e, false), err) || err != nil {
					return
				}
			}
			return
		}
		path, err := log.Path(ctx, session)
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range log.Read(ctx, session, eventlog.Between(0, path[len(path)-1].To)) {
			for len(path) > 1 && path[0].To < e.Seq {
				path = path[1:]
			}
			orphaned := e.Type.Scope() == eventlog.PathScope && (e.Seq < path[0].From || e.Seq > path[0].To)
			if !yield(newEntry(&e, orphaned), err) || err != nil {
				return
			}
		}
	}
}

// reader joins entries. It is fed one after the other.
type reader struct {
	yield   func(*Entry, error) bool
	held    []*Entry
	waiting map[string]*Entry // for results, by call id
	// open is the message that the next one may be a piece of.
	open  *Entry
	turns turns
}

func (r *reader) take(x *Entry) (more bool) {
	if x.IsMessage {
		r.answer(x)
		if x.isPieceOf(r.open) {
			r.wait(x, r.open)
			r.open.fold(x)
			return r.release(held)
		}
		r.wait(x, x)
	} else {
		r.ran(x)
	}
	r.turns.take(x, r.last())
	r.held = append(r.held, x)
	r.begin(x)
	return r.release(held)
}

// begin ends the message before, if x is another one.
func (r *reader) begin(x *Entry) {
	if !x.IsMessage || x.empty() {
		return
	}
	r.open = nil
	if x.Message.Group != "" {
		r.open = x
	}
}

func (r *reader) last() *Entry {
	if len(r.held) == 0 {
		return nil
	}
	return r.held[len(r.held)-1]
}

// answer moves the results of x under the calls that wait for them.
func (r *reader) answer(x *Entry) {
	rest := x.Message.Parts[:0:0]
	for _, part := range x.Message.Parts {
		caller := r.waiting[part.CallID]
		if part.Type != eventlog.ToolResultPart || caller == nil || caller.Orphaned != x.Orphaned {
			rest = append(rest, part)
			continue
		}
		caller.Results[part.CallID] = Result{x.Event.Seq, x.Event.Timestamp, part}
		delete(r.waiting, part.CallID)
		x.answered++
	}
	x.Message.Parts = rest
}

// ran gives a call the result that was recorded when its tool had run. It stands
// until a message tells the result.
func (r *reader) ran(x *Entry) {
	t, ok, err := x.Event.ToolCompletion()
	if caller := r.waiting[t.CallID]; ok && err == nil && caller != nil && caller.Orphaned == x.Orphaned {
		if len(t.Content) == 0 && t.Error != "" {
			t.Content = []eventlog.Part{eventlog.Text(t.Error)}
		}
		part := eventlog.ToolResult(t.CallID, t.Name, t.Content...)
		part.IsError = t.IsError || t.Error != ""
		caller.Results[t.CallID] = Result{x.Event.Seq, x.Event.Timestamp, part}
	}
}

// wait notes the calls of a piece, which stand in the entry of the message.
func (r *reader) wait(piece, message *Entry) {
	for _, call := range piece.Message.ToolCalls() {
		if message.Results == nil {
			message.Results = map[string]Result{}
		}
		r.waiting[call.CallID] = message
	}
}

// release yields the entries that wait for nothing, and what is over the limit.
func (r *reader) release(most int) (more bool) {
	for len(r.held) > 0 {
		first := r.held[0]
		if len(r.held) <= most && (r.pending(first) || len(r.held) == 1 && most > 0) {
			return true
		}
		r.held = r.held[1:]
		r.forget(first)
		if first.empty() {
			continue
		}
		if !r.yield(first, nil) {
			return false
		}
	}
	return true
}

// pending reports whether results, or further pieces, may still come.
func (r *reader) pending(x *Entry) bool {
	if x == r.open {
		return true
	}
	for _, call := range x.Message.ToolCalls() {
		if r.waiting[call.CallID] == x {
			return true
		}
	}
	return false
}

func (r *reader) forget(x *Entry) {
	if x == r.open {
		r.open = nil
	}
	for _, call := range x.Message.ToolCalls() {
		if r.waiting[call.CallID] == x {
			delete(r.waiting, call.CallID)
		}
	}
}

// done yields what is held.
func (r *reader) done() { r.release(0) }
