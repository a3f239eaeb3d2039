package flowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/internal/playback"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/transfer"
)

// errOpen means that the recording ended inside a turn.
var errOpen = errors.New("the recording ends inside a turn")

func newPlayer(ctx context.Context, log *eventlog.Log, session string, render projection.RenderOptions, o Options) (*player, error) {
	t, err := readTape(ctx, log, session)
	switch {
	case errors.Is(err, event.ErrRedacted):
		return nil, fmt.Errorf("%w: %w", ErrNotServed, err)
	case err != nil:
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	p := &player{ctx: ctx, tape: t, options: o, render: render, now: t.through.Timestamp}
	for _, x := range t.items {
		if x.turn != nil {
			x.turn.number = len(p.turns)
			p.turns = append(p.turns, x.turn)
		}
	}
	switch {
	case o.approved != nil:
		p.prompts = o.approved
	case o.Update || o.Prompts == "":
		p.prompts = &prompts{}
	default:
		p.prompts, err = readPrompts(o.Prompts)
	}
	return p, err
}

// begin gives the log of the run the events before the first turn, and all blobs.
func (p *player) begin(ctx context.Context, log *eventlog.Log) error {
	t := p.tape
	var parents []string
	for a, err := range t.log.Ancestors(ctx, t.session) {
		if err != nil {
			return err
		}
		parents = append(parents, a.Session)
	}
	for _, parent := range slices.Backward(parents) {
		if _, err := transfer.Session(ctx, log, t.log, parent); err != nil {
			return err
		}
	}
	if err := p.copyBlobs(ctx, log); err != nil || t.through.Seq == 0 {
		return err
	}
	if t.through.More() > 0 {
		return p.appendBeginning(ctx, log)
	}
	if t.through.SessionID != t.session { // the fork is inside the first turn
		_, err := fork.At(ctx, log, t.through.SessionID, fork.AtSeq(t.through.Seq), fork.Options{ID: t.session, Force: true})
		return err
	}
	_, err := transfer.Adopt(ctx, log, t.session, t.log.Store().Read(ctx, t.session, eventlog.Span{To: t.through.Seq}))
	return err
}

// appendBeginning appends copies of the events before the first turn, which are a part of an
// append.
func (p *player) appendBeginning(ctx context.Context, log *eventlog.Log) error {
	var events []event.Event
	for e, err := range p.tape.log.Read(ctx, p.tape.session, eventlog.Between(1, p.tape.through.Seq)) {
		if err != nil {
			return err
		}
		events = append(events, copyOf(&e))
	}
	_, err := log.Append(ctx, p.tape.session, eventlog.New(), events...)
	return err
}

// copyBlobs copies the blobs of the session's own events.
func (p *player) copyBlobs(ctx context.Context, log *eventlog.Log) error {
	return log.Hold(ctx, func(ctx context.Context) error {
		for e, err := range p.tape.log.Store().Read(ctx, p.tape.session, eventlog.Span{}) {
			if err != nil {
				return err
			}
			if e.Type.Name() == event.ProjectionSnapshotted && e.Seq > p.tape.through.Seq {
				continue // the run makes its own
			}
			for _, d := range e.Blobs() {
				if err := transfer.CopyBlob(ctx, log, p.tape.log, d); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// run runs the turns of the tape.
func run[S any](ctx context.Context, agent *flow.Agent[S], p *player, r *Result) error {
	a := *agent
	a.Log = r.Log
	o := &a.Options
	o.Now, o.Resume, o.Limits.Time, o.Observe.Sinks, o.Observe.Traces, o.Observe.Metrics = p.clock, nil, 0, nil, nil, nil
	ctx = playback.With(ctx, p)
	for items := p.tape.items; len(items) > 0; {
		n := slices.IndexFunc(items, func(x item) bool { return x.turn == nil })
		if n < 0 {
			n = len(items)
		}
		if n > 0 {
			if err := runTurns(ctx, &a, r.Session, items[:n]); err != nil {
				return err
			}
			items = items[n:]
			continue
		}
		if err := p.appendOther(ctx, r.Log, items[0].event); err != nil {
			return err
		}
		items = items[1:]
	}
	return nil
}

// runTurns runs turns. A turn that failed or was aborted is no error.
func runTurns[S any](ctx context.Context, a *flow.Agent[S], session string, turns []item) error {
	for _, x := range turns {
		_, err := a.Run(ctx, session, x.turn.input)
		var failed *flow.TurnError
		switch {
		case errors.As(err, &failed), errors.Is(err, flow.ErrAborted):
		case errors.Is(err, playback.ErrEnded):
			return errOpen
		case err != nil:
			return err
		}
	}
	return nil
}

// appendOther appends an event that another writer appended between two turns.
func (p *player) appendOther(ctx context.Context, log *eventlog.Log, e *event.Event) error {
	c := copyOf(e)
	switch e.Type.Name() {
	case event.HeadMoved:
		seqs, err := p.seqs(ctx, log)
		if err != nil {
			return err
		}
		m, _, err := event.Decode[event.HeadMove](e)
		if err != nil {
			return err
		}
		m.To = seqs(m.To)
		moved := event.New(m)
		moved.ID, moved.Timestamp = e.ID, e.Timestamp
		c = moved
	case event.MessageAdded, event.ContextAdded, event.CustomPatched, event.ArtifactRecorded, event.HandoffMade:
	default:
		if e.Type.Known() {
			return fmt.Errorf("%w: event %d is %s, of another writer", ErrNotServed, e.Seq, e.Type)
		}
	}
	_, err := log.Append(ctx, p.tape.session, eventlog.Any(), c)
	return err
}

// seqs returns a function that maps recorded seqs to seqs of the run.
func (p *player) seqs(ctx context.Context, log *eventlog.Log) (func(int64) int64, error) {
	got, err := p.got(ctx, log)
	if err != nil {
		return nil, err
	}
	var recorded, mine []int64
	for _, e := range p.tape.events() {
		if structural(&e) {
			recorded = append(recorded, e.Seq)
		}
	}
	for i := range got {
		if structural(&got[i]) {
			mine = append(mine, got[i].Seq)
		}
	}
	return func(seq int64) int64 {
		last := p.lastUpTo(recorded, seq)
		if i := slices.Index(recorded, last); i >= 0 && i < len(mine) {
			return mine[i]
		}
		return last
	}, nil
}

// got are the events of the run after the first ones of the recording.
func (p *player) got(ctx context.Context, log *eventlog.Log) (events []event.Event, err error) {
	from := p.tape.through.Seq + 1
	if p.tape.through.SessionID != p.tape.session && p.tape.through.Seq > 0 {
		from++ // the session_forked
	}
	for e, err := range log.Read(ctx, p.tape.session, eventlog.From(from)) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// firstDivergence compares the logs, and returns the first divergence. failed is the error
// of the run.
func (p *player) firstDivergence(ctx context.Context, r *Result, failed error) error {
	var d *DivergenceError
	if failed != nil && !errors.As(failed, &d) || p.tape.imported {
		return failed
	}
	got, err := p.got(ctx, r.Log)
	if err != nil {
		return err
	}
	x, err := p.compareLogs(got)
	switch {
	case err != nil:
		return err
	case x == nil, d == nil && r.Open && x.Got == nil:
		return failed
	case d != nil && (x.Got == nil || x.Recorded == nil || x.Recorded.Seq > d.Seq):
		return d
	}
	return p.atEvent(x)
}
