package flow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/projection"
)

// Handle is an input that Agent.Send has stored, or a session that Agent.Resume continues.
// Its methods may be called concurrently.
type Handle[S any] struct {
	// Session is the session, and Input the id of the input; Resume has no input.
	Session, Input string

	agent    *Agent[S]
	settings *settings
	ctx      context.Context // of Send
	postOnly bool
	ref      Ref

	mu    sync.Mutex
	run   *localRun   // nil if nobody runs the session here
	pause *Hibernated // of the open turn, nil if it does not hibernate
	// waited and received are the cursors of the hibernations that Wait and Receive have
	// returned.
	waited, received string
	final            *finalOutput[S] // of the runner that has ended
}

// finalOutput is what Wait returned after the end of a runner.
type finalOutput[S any] struct {
	out Output[S]
	err error
}

// Output is the content and status of a session after a turn.
type Output[S any] struct {
	Content[S]
	// Message is the last message of the agent, nil if there is none. The member snapshot_id of
	// its Extra is the snapshot in Ref; the log does not have this member.
	Message *event.Message
	Status  Status
	// StopReason and Err are of the turn.
	StopReason string
	Err        error
	// Ref is the newest snapshot that the runner made. If another process ran the turn, it is
	// the snapshot that is reserved for the end of the turn.
	Ref Ref
	// Snapshots are the snapshots that the runner made.
	Snapshots []string
	Spend     projection.Spend

	ended event.TurnStatus // of the turn
}

// Text is the text of the last message of the agent, empty if there is none.
func (o *Output[S]) Text() string {
	if o.Message == nil {
		return ""
	}
	return o.Message.Text()
}

// setRef sets Ref, and the snapshot in the message.
func (o *Output[S]) setRef(ref Ref) {
	o.Ref = ref
	if o.Message == nil || ref.Snapshot == "" {
		return
	}
	m := *o.Message
	members, _ := rawjson.Members(m.Extra) // an object, or nil
	members = slices.DeleteFunc(members, func(x rawjson.Member) bool { return x.Name == "snapshot_id" })
	id, _ := json.Marshal(ref.Snapshot) // a string
	m.Extra = rawjson.Object(append(members, rawjson.Member{Name: "snapshot_id", Value: id}))
	o.Message = &m
}

// localRun is a runner of this process.
type localRun struct {
	r      *runner
	detach func() bool // lets the runner outlive the context of Send
	done   chan struct{}
	err    error // set when done is closed
}

// begin runs the turns of a claimed session in a goroutine, until ctx ends.
func (r *runner) begin(ctx context.Context) *localRun {
	inner, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	l := &localRun{r: r, done: make(chan struct{}), detach: context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })}
	go func() {
		l.err = r.serve(inner)
		r.out.end(l.err)
		l.detach()
		close(l.done)
	}()
	return l
}

func (a *Agent[S]) handle(ctx context.Context, s *settings, from *start, o opened) *Handle[S] {
	h := &Handle[S]{Session: from.session, agent: a, settings: s, ctx: ctx, ref: o.ref, pause: o.pause}
	if from.in != nil {
		h.Input, h.postOnly = from.in.ID, from.in.PostOnly
	}
	if o.r != nil {
		h.run = o.r.begin(ctx)
	}
	return h
}

// Ref is the snapshot that is reserved for the end of the turn of the input, also before the
// turn begins. Agent.Snapshot returns its status. A fork has no reference for an input of its
// parent.
func (h *Handle[S]) Ref() Ref { return h.ref }

// Turn waits until the input has begun a turn, or has gone into a running one, and returns
// the turn. It starts no runner.
func (h *Handle[S]) Turn(ctx context.Context) (turn ulid.ULID, err error) {
	if h.Input == "" {
		info, err := Info(ctx, h.settings.log, h.Session)
		if err == nil && info.Turn == nil {
			err = fmt.Errorf("session %q has no open turn: %w", h.Session, ErrNotOpen)
		}
		if err != nil {
			return turn, err
		}
		return info.Turn.ID, nil
	}
	f, err := h.follower(ctx)
	for err == nil {
		if turn, _ = f.turn(); !turn.IsZero() {
			return turn, nil
		}
		err = f.wait(ctx, time.Time{})
	}
	return turn, err
}

// Wait waits until the turn of the input has ended, and the runner that Send started, and
// returns the output. If a turn hibernates, the error is a *Hibernated; the next Wait waits
// until the turn continues. It starts a runner when the session has none, unless the input
// is PostOnly. The error is a *TurnError if the turn failed, ErrAborted if it was aborted,
// the reason if the runner stopped, or the end of ctx; Output has the session in any case.
func (h *Handle[S]) Wait(ctx context.Context) (Output[S], error) {
	out, err := h.wait(ctx)
	if err == nil && out.ended == event.TurnStatusAborted {
		err = ErrAborted
	}
	return out, err
}

func (h *Handle[S]) wait(ctx context.Context) (Output[S], error) {
	for {
		h.mu.Lock()
		run, pause := h.run, h.pause
		told := pause != nil && h.waited == pause.Cursor.ID
		if pause != nil {
			h.waited = pause.Cursor.ID
		}
		h.mu.Unlock()
		switch {
		case run != nil:
			select {
			case <-run.done:
			case <-ctx.Done():
				return h.noOutput(), context.Cause(ctx)
			}
			out, ended, err := h.result(run)
			if ended {
				return out, err
			}
		case pause != nil && !told:
			out, err := h.load(ctx)
			out.setRef(pause.Ref)
			if err == nil {
				err = pause
			}
			return out, err
		default:
			out, _, ended, err := h.follow(ctx)
			if ended || err != nil {
				return out, err
			}
		}
	}
}

func (h *Handle[S]) noOutput() Output[S] { return Output[S]{Content: Content[S]{Session: h.Session}} }

// result is the output of a runner that has ended; false if the turn hibernates.
func (h *Handle[S]) result(run *localRun) (out Output[S], ended bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.final == nil {
		out, ended, err := h.resultOf(run)
		if !ended {
			return out, false, nil
		}
		h.final = &finalOutput[S]{out, err}
		if err == nil {
			parked.put(parkedStates{h.agent, h.Session, run.r.live})
		}
	}
	return h.final.out, true, h.final.err
}

// resultOf is result without the copy in h.final. The caller holds h.mu.
func (h *Handle[S]) resultOf(run *localRun) (out Output[S], ended bool, err error) {
	var pause *Hibernated
	r := run.r
	r.mu.Lock()
	last, ok := r.ends[h.Input]
	if h.Input == "" {
		last, ok = r.last, run.err == nil
	}
	r.mu.Unlock()
	switch {
	case !ok && errors.As(run.err, &pause):
		h.paused(run, pause)
		return out, false, nil
	case !ok && run.err == nil && h.Input != "":
		h.ranNothing(run)
		return out, false, nil
	}
	out, err = outputOf[S](h.ctx, r.settings, &r.live.Loaded)
	out.Snapshots, out.StopReason, out.Err, out.ended = r.snapshots, last.end.StopReason, last.err, last.end.Status
	if n := len(out.Snapshots); n > 0 {
		out.setRef(Ref{Session: h.Session, Snapshot: out.Snapshots[n-1]})
	}
	switch {
	case !ok && run.err != nil:
		err = run.err
	case err == nil:
		err = out.Err
	}
	return out, true, err
}

// paused notes that a runner ended since its turn hibernates. The caller holds h.mu.
func (h *Handle[S]) paused(run *localRun, pause *Hibernated) {
	if h.run == run {
		p := *pause
		p.Queued = h.Input != "" && run.r.pausedInput != h.Input
		h.run, h.pause = nil, &p
	}
}

// ranNothing notes that another runner has ended the turn of the input before this one began.
// The caller holds h.mu.
func (h *Handle[S]) ranNothing(run *localRun) {
	if h.run == run {
		h.run = nil
	}
}

// outputOf is the output of loaded states.
func outputOf[S any](ctx context.Context, s *settings, l *projection.Loaded) (out Output[S], err error) {
	out.Session = l.Session
	content, err := contentOf[S](s, l)
	if err != nil {
		return out, err
	}
	out.Content = content
	for _, m := range slices.Backward(out.Messages) {
		if m.Role == event.Assistant {
			out.Message = &m
			break
		}
	}
	usage, _ := projection.State(l, projection.Usage())
	out.Spend = usage.Total
	info, err := infoOf(context.WithoutCancel(ctx), s.log, l)
	out.Status = info.Status
	return out, err
}

// load is the output of the session as it is.
func (h *Handle[S]) load(ctx context.Context) (Output[S], error) {
	l, err := projection.LoadSet(ctx, h.settings.log, h.Session, h.settings.set)
	if err != nil {
		return h.noOutput(), err
	}
	return outputOf[S](ctx, h.settings, l)
}

// follow waits until the turn of the input has ended in another process, or until this
// process runs the session, or the open turn hibernates anew.
func (h *Handle[S]) follow(ctx context.Context) (out Output[S], end TurnEnd, ended bool, err error) {
	out = h.noOutput()
	f, err := h.follower(ctx)
	for err == nil {
		var info RunInfo
		if info, err = infoOf(ctx, h.settings.log, &f.live.Loaded); err != nil {
			break
		}
		if end, ended, failed := f.end(ctx, &info); ended {
			out, err = outputOf[S](ctx, h.settings, &f.live.Loaded)
			if out.StopReason, out.Err, out.ended = end.StopReason, failed, end.Status; err == nil {
				err = failed
			}
			if failed == nil {
				out.setRef(h.ref)
			}
			return out, end, true, err
		}
		var moved bool
		if moved, err = h.continues(ctx, f, &info); moved || err != nil {
			break
		}
		err = f.wait(ctx, info.Due)
	}
	return out, end, false, err
}

// continues starts a runner if the session has none and its turn can continue. It reports
// whether this process runs the session now, or the turn hibernates anew.
func (h *Handle[S]) continues(ctx context.Context, f *follower, info *RunInfo) (moved bool, err error) {
	if p := info.hibernated; info.Runner == "" && p != nil && !p.due(h.settings.now()) && !p.lapsed(h.settings.now()) {
		h.mu.Lock()
		defer h.mu.Unlock()
		moved = h.pause == nil || h.pause.Cursor.ID != p.Cursor.ID || len(h.pause.Reviews) != len(p.Reviews)
		if moved {
			q := *p
			q.Queued = h.Input != "" && info.Turn.InputID != h.Input
			h.pause = &q
			h.waited, h.received = "", ""
		}
		return moved, nil
	}
	if info.Runner != "" || h.postOnly {
		return false, nil
	}
	if err := context.Cause(h.ctx); err != nil {
		return false, err
	}
	o, err := h.settings.open(ctx, &start{session: h.Session, wanted: h.Input})
	var pause *Hibernated
	switch {
	case errors.As(err, &pause), errors.Is(err, ErrAlreadyRunning):
		return false, nil // it has changed since
	case err != nil:
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.run, h.pause = o.r.begin(h.ctx), nil
	return true, nil
}

// Receive yields what happens in the turn of the input, up to Chunk.EndTurn. If the turn
// hibernates or fails, the last element is an error: *Hibernated or *TurnError. After a
// *Hibernated, the next Receive waits until the turn continues. It starts a runner as Wait
// does. Chunks are not lost between two calls. Of a turn that the runner of another handle or
// of another process runs, it yields the end only; eventlog.Log.Watch yields its messages. At
// the end of the turn the session is released, unless another input waits.
func (h *Handle[S]) Receive() iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for {
			run, pause := h.receives()
			switch {
			case run != nil:
				if !h.receiveFrom(run, yield) {
					return
				}
			case pause != nil:
				yield(Chunk{}, pause)
				return
			default:
				_, end, ended, err := h.follow(h.ctx)
				if err != nil {
					yield(Chunk{}, err)
					return
				}
				if ended {
					yield(Chunk{EndTurn: &end}, nil)
					return
				}
			}
		}
	}
}

// receives returns the runner to receive from, or the hibernation that no Receive has
// returned.
func (h *Handle[S]) receives() (*localRun, *Hibernated) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run != nil || h.pause == nil || h.received == h.pause.Cursor.ID {
		return h.run, nil
	}
	h.received = h.pause.Cursor.ID
	return nil, h.pause
}

// receiveFrom yields the chunks of a runner. It returns true if its turn hibernates, or if
// another runner has ended the turn.
func (h *Handle[S]) receiveFrom(run *localRun, yield func(Chunk, error) bool) (again bool) {
	for {
		chunk, ok, err := run.r.out.next(context.Background())
		var pause *Hibernated
		if errors.As(err, &pause) {
			<-run.done
			h.mu.Lock()
			h.paused(run, pause)
			h.mu.Unlock()
			return true
		}
		if err != nil {
			yield(Chunk{}, err)
			return false
		}
		if !ok && h.Input != "" && !run.r.out.isClosed() {
			return h.othersEnded(run)
		}
		if !ok || !yield(chunk, nil) || chunk.EndTurn != nil {
			return false
		}
	}
}

// othersEnded reports whether a runner that has ended has not run the turn of the input.
func (h *Handle[S]) othersEnded(run *localRun) bool {
	<-run.done
	run.r.mu.Lock()
	_, ran := run.r.ends[h.Input]
	run.r.mu.Unlock()
	if ran || run.err != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ranNothing(run)
	return true
}

// Detach lets the runner of this process go on after the end of the context of Send, and
// returns Ref. Receive yields no further chunks.
func (h *Handle[S]) Detach() Ref {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx = context.WithoutCancel(h.ctx)
	if h.run != nil {
		h.run.detach()
		h.run.r.out.close()
	}
	return h.ref
}

// Abort ends the turn of the input; see the function Abort. It is ErrNotOpen while the input
// waits for another turn to end. Resume's handle aborts the open turn.
func (h *Handle[S]) Abort(ctx context.Context, by, reason string) (before Status, err error) {
	a := event.Abort{By: by, Reason: reason}
	if h.Input != "" {
		f, err := h.follower(ctx)
		if err != nil {
			return "", err
		}
		if a.TurnID, _ = f.turn(); a.TurnID.IsZero() {
			return "", fmt.Errorf("session %q: input %q has no turn yet: %w", h.Session, h.Input, ErrNotOpen)
		}
	}
	return Abort(ctx, h.settings.log, h.Session, a)
}

// follower follows the states of a session, for one input.
type follower struct {
	*settings
	live  *projection.Live
	input string
}

func (h *Handle[S]) follower(ctx context.Context) (*follower, error) {
	live, err := resume(ctx, h.settings.log, h.Session, h.settings.set, h.settings.options.Snapshots)
	if err != nil {
		return nil, err
	}
	return &follower{h.settings, live, h.Input}, nil
}

// turn is the turn of the input; zero if it has none yet. known is false for an input that
// only the parent of a fork has.
func (f *follower) turn() (turn ulid.ULID, known bool) {
	begun, _ := projection.State(f.live, turnsOfInputs())
	if b, ok := begun.Begun[f.input]; ok && !waiting(f.live, f.input) {
		return b.Turn, true
	}
	return turn, waiting(f.live, f.input)
}

// end is the end of the turn of the input, and its error if it failed; false if it has none.
func (f *follower) end(ctx context.Context, info *RunInfo) (end TurnEnd, ended bool, err error) {
	control, _ := projection.State(f.live, projection.Control())
	if f.input == "" {
		if info.Turn != nil || len(info.Inbox) > 0 {
			return end, false, nil
		}
		if n := len(control.Ended); n > 0 {
			end.Turn = control.Ended[n-1].TurnID
		}
	} else {
		turn, known := f.turn()
		if turn.IsZero() || info.Turn != nil && info.Turn.ID == turn || info.Aborted != nil && info.Aborted.ID == turn {
			return end, !known, nil
		}
		end.Turn = turn
	}
	for _, x := range slices.Backward(control.Ended) {
		if x.TurnID != end.Turn {
			continue
		}
		end.Status, end.StopReason = x.Status, x.StopReason
		if x.Status == event.TurnStatusFailed {
			err = f.failure(ctx, x)
		}
		return end, true, err
	}
	if f.input != "" && len(control.Ended) < 32 { // the state has the newest 32 ends
		return end, true, fmt.Errorf("session %q: turn %s has left the path: %w", info.Session, end.Turn, ErrOvertaken)
	}
	return end, true, nil
}

// failure is the error of a turn that failed, from the log.
func (f *follower) failure(ctx context.Context, x projection.EndedTurn) error {
	e, err := f.log.Event(ctx, f.live.Session, x.Seq)
	if err != nil {
		return err
	}
	c, _, err := event.Decode[event.TurnCompletion](&e)
	if err != nil {
		return err
	}
	return &TurnError{Session: f.live.Session, Turn: x.TurnID, Code: c.Code, Err: errors.New(c.Error)}
}

// followPoll is how often a follower looks whether a runner was killed, or a child changed.
const followPoll = time.Second

// wait waits for a new event, and at most until due or for followPoll.
func (f *follower) wait(ctx context.Context, due time.Time) error {
	d := followPoll
	if !due.IsZero() {
		d = min(d, max(due.Sub(f.now()), 0)+time.Millisecond)
	}
	inner, stop := context.WithTimeout(ctx, d)
	defer stop()
	for _, err := range f.log.Watch(inner, f.live.Session, f.live.Head.Seq+1) {
		if err != nil && inner.Err() == nil {
			if !watcherLost(ctx, f.log, f.live.Session, f.live.Head, err) {
				return err
			}
			f.live, err = resume(ctx, f.log, f.live.Session, f.set, f.options.Snapshots)
			return err
		}
		break
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return bounded(ctx, func() error {
		err := f.live.Follow(ctx)
		if errors.Is(err, eventlog.ErrConflict) {
			return nil
		}
		return err
	})
}
