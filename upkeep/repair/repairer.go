package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/upkeep/internal/adopt"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// repairer is one repair of one session.
type repairer struct {
	log, into *eventlog.Log
	opts      Options
	seen      map[string]bool // forks whose parents are being repaired
	report    Report
	at        uint64 // the session's version
	*salvage
	refork *event.Fork // the parent's event that a session_forked must name now
}

func newRepairer(log *eventlog.Log, opts Options) *repairer {
	r := &repairer{log: log, into: log, opts: opts, report: Report{Action: None}}
	if opts.Into != nil {
		r.into = opts.Into
	}
	return r
}

func (r *repairer) run(ctx context.Context, session string) error {
	r.report.Session = session
	return r.locked(ctx, r.into == r.log, func(ctx context.Context) error { return r.repair(ctx, session) })
}

// locked runs fn under the store lock of the log that is written to, if fn needs the
// lock and writes.
func (r *repairer) locked(ctx context.Context, needed bool, fn func(ctx context.Context) error) error {
	if !needed || r.opts.DryRun {
		return fn(ctx)
	}
	return engine.Of(r.into).Locked(ctx, r.opts.InPlace, fn)
}

// repair finds the damage of a session, and repairs it.
func (r *repairer) repair(ctx context.Context, session string) error {
	torn, err := r.findTorn(ctx, session)
	if err != nil {
		return err
	}
	if torn.Bytes > 0 && torn.Offset == 0 {
		if r.report.Torn = torn; r.into != r.log {
			return nil // the session has no events to bring
		}
		return r.cut(ctx, torn)
	}
	if err := r.examine(ctx, session, torn); err != nil {
		return err
	}
	sound := r.sound() && r.refork == nil
	if sound {
		if sound, err = r.readable(ctx); err != nil {
			return err
		}
	}
	switch {
	case sound && torn.Bytes == 0:
		r.report.Head = r.chosen[len(r.chosen)-1].head()
		return r.listUnmended(ctx)
	case sound && r.into == r.log:
		return r.cut(ctx, torn)
	}
	return r.rescue(ctx, torn)
}

// listUnmended lists the defects of a session with sound lines, for example missing
// blobs.
func (r *repairer) listUnmended(ctx context.Context) error {
	found, err := verify.New(r.log).Lines(ctx, r.session)
	r.report.Unmended = found.Defects
	return err
}

// readable reports whether readers see the whole session: its lines may be sound,
// and the way to them damaged.
func (r *repairer) readable(ctx context.Context) (bool, error) {
	for _, err := range r.log.Store().Read(ctx, r.session, eventlog.Span{}) {
		if errors.Is(err, eventlog.ErrCorrupt) {
			return false, ctx.Err()
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// findTorn is the session's torn tail, if it holds nothing that was acknowledged.
func (r *repairer) findTorn(ctx context.Context, session string) (eventlog.TornTail, error) {
	tails, ok := eventlog.As[eventlog.TailKeeper](r.log.Store())
	if !ok {
		return eventlog.TornTail{}, nil
	}
	for t, err := range tails.TornTails(ctx, session) {
		if err != nil || t.Whole {
			return eventlog.TornTail{}, err
		}
		return t, nil
	}
	return eventlog.TornTail{}, nil
}

// cut truncates a torn tail.
func (r *repairer) cut(ctx context.Context, torn eventlog.TornTail) error {
	r.report.Action, r.report.Torn, r.report.Path = Cut, torn, torn.Path
	tails, ok := eventlog.As[eventlog.TailKeeper](r.log.Store())
	if !ok {
		return fmt.Errorf("cut a torn tail: %w", eventlog.ErrUnsupported)
	}
	if r.salvage != nil {
		r.report.Head = r.chosen[len(r.chosen)-1].head()
	}
	if r.opts.DryRun {
		return nil
	}
	cut, saved, err := tails.CutTail(ctx, torn.Session)
	if err != nil {
		return err
	}
	r.report.Torn, r.report.Saved = cut, saved
	if cut.Bytes == 0 {
		r.report.Action = None // another process was faster
	}
	return nil
}

// examine reads all that is stored of the session.
func (r *repairer) examine(ctx context.Context, session string, torn eventlog.TornTail) (err error) {
	if versioner, ok := eventlog.As[eventlog.Versioner](r.log.Store()); ok && r.opts.InPlace {
		if r.at, err = versioner.Version(ctx, session); err != nil {
			return err
		}
	}
	if r.salvage, err = survey(ctx, r.log, r.opts.Backup, session, torn.Offset); err != nil {
		return err
	}
	r.report.Path = r.path
	return r.checkParent(ctx)
}

// rescue reports the damage, and writes the salvaged session.
func (r *repairer) rescue(ctx context.Context, torn eventlog.TornTail) error {
	if r.report.Action, r.report.Torn = Salvage, r.salvage.torn; torn.Bytes > 0 {
		r.report.Torn = torn
	}
	r.report.Copied = r.copied()
	r.report.Kept, r.report.Lost, r.report.Ignored = int64(len(r.chosen))-r.report.Copied, r.lost, r.ignored
	return r.locked(ctx, r.into != r.log, r.write)
}

// write writes the salvaged session.
func (r *repairer) write(ctx context.Context) error {
	as, err := r.chooseName(ctx)
	if err != nil {
		return err
	}
	r.report.As = as
	if err := r.bringBlobs(ctx); err != nil {
		return err
	}
	if err := r.preview(ctx, as); err != nil {
		return err
	}
	if r.opts.InPlace {
		return r.replace(ctx)
	}
	if r.opts.DryRun {
		return nil
	}
	adopted, err := adopt.Events(ctx, r.into, as, r.stream(ctx, as), adopt.Options{Salvaged: true})
	r.report.Stored = adopted.Stored
	return err
}

// chooseName returns the id of the session to write.
func (r *repairer) chooseName(ctx context.Context) (string, error) {
	if r.opts.InPlace {
		return r.session, nil
	}
	as := r.opts.As
	if as == "" && r.into != r.log {
		as = r.session
	}
	if as != "" {
		free, err := r.isFree(ctx, as)
		if err == nil && !free {
			err = fmt.Errorf("session %q: %w", as, eventlog.ErrExists)
		}
		return as, err
	}
	for n := 1; ; n++ {
		as := salvagedName(r.session, n)
		if free, err := r.isFree(ctx, as); free || err != nil {
			return as, err
		}
	}
}

func salvagedName(session string, n int) string {
	suffix := "-salvaged"
	if n > 1 {
		suffix = fmt.Sprintf("%s-%d", suffix, n)
	}
	most := line.MaxSession - len(suffix)
	for len(session) > most || !utf8.ValidString(session) {
		session = session[:len(session)-1]
	}
	return session + suffix
}

// isFree reports whether the repair may write session as: the session is missing, or an
// earlier try of the same repair has written it.
func (r *repairer) isFree(ctx context.Context, as string) (bool, error) {
	if as == r.session && r.into == r.log {
		return false, nil
	}
	if _, err := r.into.Head(ctx, as); errors.Is(err, eventlog.ErrNotFound) {
		return true, nil
	}
	err := adopt.CheckSalvaged(ctx, r.into, as, r.stream(ctx, as))
	if errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrCorrupt) {
		return false, ctx.Err()
	}
	return true, err
}

// stream yields the salvaged events, and copies the blobs they need into another
// log before it yields them.
func (r *repairer) stream(ctx context.Context, as string) iter.Seq2[event.Event, error] {
	events := r.events(ctx, as, r.refork)
	if r.into == r.log || r.opts.DryRun {
		return events
	}
	copied := map[event.Digest]bool{}
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			for _, d := range e.Blobs() {
				if err == nil && !copied[d] {
					copied[d] = true
					err = transfer.CopyBlob(ctx, r.into, r.log, d)
				}
				if errors.Is(err, eventlog.ErrBlobNotFound) || errors.Is(err, eventlog.ErrCorrupt) {
					err = nil // Report.Unmended lists it
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// preview verifies the salvaged session before it is written.
func (r *repairer) preview(ctx context.Context, as string) error {
	i := 0
	found, err := verify.New(r.log).Events(ctx, as, func(yield func(event.Event, error) bool) {
		for e, err := range r.events(ctx, as, r.refork) {
			if err == nil {
				kept := i < len(r.chosen) && r.chosen[i].seq == e.Seq
				if same := kept && r.chosen[i].hash == line.Hash(e.Hash()); !same && r.report.Resealed == 0 {
					r.report.Resealed = e.Seq
				}
				if kept {
					i++
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	r.report.Head = found.Head
	r.report.Unmended = r.unchained
	for _, d := range found.Defects {
		if d.Rule != verify.RuleFork || r.into == r.log {
			r.report.Unmended = append(r.report.Unmended, d)
		}
	}
	return nil
}

// replace replaces the damaged session by the repaired session.
func (r *repairer) replace(ctx context.Context) error {
	salvager, ok := eventlog.As[eventlog.Salvager](r.log.Store())
	if !ok {
		return fmt.Errorf("replace its lines: %w", eventlog.ErrUnsupported)
	}
	forks, err := r.log.Forks(ctx, r.session)
	if err != nil {
		return err
	}
	if sharing := forks.Sharing(r.session, cmp.Or(r.report.Resealed, r.last+1)); len(sharing) > 0 {
		return fmt.Errorf("%w: forked by %q after event %d, which changes", eventlog.ErrInUse, sharing, r.report.Resealed)
	}
	if r.opts.DryRun {
		return nil
	}
	return engine.Of(r.log).Exclusively(ctx, r.session, func(ctx context.Context) (err error) {
		r.report.Copy, err = salvager.Replace(ctx, r.session, r.at, r.events(ctx, r.session, r.refork))
		r.report.Stored = r.last - r.start + 1
		return err
	})
}
