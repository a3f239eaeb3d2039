package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"
)

// repairer is one repair of one session.
type repairer struct {
	log, into *Log
	opts      RepairOptions
	dry       bool
	seen      map[string]bool // forks whose parents are being repaired
	report    Repair
	at        uint64 // the session's version
	*salvage
	refork *Fork // what a session_forked is to say of its parent
}

func (r *repairer) run(ctx context.Context, session string) error {
	if r.into == r.log {
		unlock, err := r.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	}
	torn, err := r.torn(ctx, session)
	if err != nil {
		return err
	}
	if torn.Bytes > 0 && torn.Offset == 0 {
		if r.report.Torn = torn; r.into != r.log {
			return nil // there is nothing to bring
		}
		return r.cut(ctx, torn)
	}
	if err := r.look(ctx, session, torn); err != nil {
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
		return r.remains(ctx)
	case sound && r.into == r.log:
		return r.cut(ctx, torn)
	}
	return r.rescue(ctx, torn)
}

// remains lists the defects of a session whose lines need no repair: above all
// blobs that are missing.
func (r *repairer) remains(ctx context.Context) error {
	found, err := r.log.Verify(ctx, r.session)
	r.report.Unmended = found.Defects
	return err
}

// readable reports whether the session can be read as it stands: all lines may
// be there, and what leads to them be damaged.
func (r *repairer) readable(ctx context.Context) (bool, error) {
	for _, err := range r.log.store.Read(ctx, r.session, Span{}) {
		if errors.Is(err, ErrCorrupt) {
			return false, ctx.Err()
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// lock takes the store lock of the log that is written to.
func (r *repairer) lock(ctx context.Context) (unlock func(), err error) {
	if r.dry {
		return func() {}, nil
	}
	return r.into.lockStore(ctx, r.opts.InPlace)
}

// torn is the torn tail of the session that nothing acknowledged is in, if the
// store finds one.
func (r *repairer) torn(ctx context.Context, session string) (TornTail, error) {
	lister, ok := As[TailLister](r.log.store)
	if !ok {
		return TornTail{}, nil
	}
	for t, err := range lister.TornTails(ctx, session) {
		if err != nil || t.Whole {
			return TornTail{}, err
		}
		return t, nil
	}
	return TornTail{}, nil
}

// cut cuts a torn tail off.
func (r *repairer) cut(ctx context.Context, torn TornTail) error {
	r.report.Action, r.report.Torn, r.report.Path = RepairCut, torn, torn.Path
	cutter, ok := As[TailCutter](r.log.store)
	if !ok {
		return fmt.Errorf("cut a torn tail: %w", ErrUnsupported)
	}
	if r.salvage != nil {
		r.report.Head = r.chosen[len(r.chosen)-1].head()
	}
	if r.dry {
		return nil
	}
	cut, saved, err := cutter.CutTail(ctx, torn.Session)
	if err != nil {
		return err
	}
	r.report.Torn, r.report.Saved = cut, saved
	if cut.Bytes == 0 {
		r.report.Action = RepairNone // somebody else was faster
	}
	return nil
}

// look finds out what there is of the session.
func (r *repairer) look(ctx context.Context, session string, torn TornTail) (err error) {
	if versioner, ok := As[Versioner](r.log.store); ok && r.opts.InPlace {
		if r.at, err = versioner.Version(ctx, session); err != nil {
			return err
		}
	}
	r.salvage, err = r.log.survey(ctx, session, torn.Offset)
	if err != nil {
		return err
	}
	r.report.Path = r.path
	return r.parent(ctx)
}

// rescue writes what was found, without the torn tail, where it is to go.
func (r *repairer) rescue(ctx context.Context, torn TornTail) error {
	if r.report.Action, r.report.Torn = RepairSalvage, r.salvage.torn; torn.Bytes > 0 {
		r.report.Torn = torn
	}
	r.report.Kept, r.report.Lost, r.report.Ignored = int64(len(r.chosen)), r.lost, r.ignored
	if r.into != r.log {
		unlock, err := r.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	}
	as, err := r.name(ctx)
	if err != nil {
		return err
	}
	r.report.As = as
	if err := r.preview(ctx, as); err != nil {
		return err
	}
	if r.opts.InPlace {
		return r.replace(ctx)
	}
	if r.dry {
		return nil
	}
	a := r.adoption(ctx, as)
	if err := a.verify(ctx); err != nil {
		return err
	}
	if err := a.store(ctx); err != nil {
		return err
	}
	r.report.Stored = a.stored
	return nil
}

// name decides which session is written.
func (r *repairer) name(ctx context.Context) (string, error) {
	if r.opts.InPlace {
		return r.session, nil
	}
	as := r.opts.As
	if as == "" && r.into != r.log {
		as = r.session
	}
	if as != "" {
		free, err := r.free(ctx, as)
		if err == nil && !free {
			err = fmt.Errorf("session %q: %w", as, ErrExists)
		}
		return as, err
	}
	for n := 1; ; n++ {
		as := salvagedName(r.session, n)
		if free, err := r.free(ctx, as); free || err != nil {
			return as, err
		}
	}
}

func salvagedName(session string, n int) string {
	suffix := "-salvaged"
	if n > 1 {
		suffix = fmt.Sprintf("%s-%d", suffix, n)
	}
	most := maxSessionID - len(suffix)
	for len(session) > most || !utf8.ValidString(session) {
		session = session[:len(session)-1]
	}
	return session + suffix
}

// free reports whether a session may be written: it is missing, or the
// beginning or the outcome of this very repair.
func (r *repairer) free(ctx context.Context, as string) (bool, error) {
	if as == r.session && r.into == r.log {
		return false, nil
	}
	if _, err := r.into.Head(ctx, as); errors.Is(err, ErrNotFound) {
		return true, nil
	}
	a := r.adoption(ctx, as)
	err := a.verify(ctx)
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrCorrupt) {
		return false, ctx.Err()
	}
	return true, err
}

// adoption adopts the salvaged events. Blobs that are missing are no reason to
// leave an event out, nor is the state of a fork's parent.
func (r *repairer) adoption(ctx context.Context, as string) *adoption {
	events := r.events(ctx, as, r.refork)
	if r.into != r.log && !r.dry {
		events = r.withBlobs(ctx, events)
	}
	return &adoption{log: r.into, session: as, events: events, lax: true}
}

// withBlobs copies the blobs that events need before it yields them.
func (r *repairer) withBlobs(ctx context.Context, events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	copied := map[Digest]bool{}
	return func(yield func(Event, error) bool) {
		for e, err := range events {
			for _, d := range e.Blobs() {
				if err == nil && !copied[d] {
					copied[d] = true
					err = copyBlob(ctx, r.into, r.log, d)
				}
				if errors.Is(err, ErrBlobNotFound) || errors.Is(err, ErrCorrupt) {
					err = nil // it is among what stays unmended
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// preview goes through the repaired session as Verify would.
func (r *repairer) preview(ctx context.Context, as string) error {
	v := r.log.verifier(as)
	i := 0
	for e, err := range r.events(ctx, as, r.refork) {
		if err != nil {
			return err
		}
		was := i < len(r.chosen) && r.chosen[i].seq == e.Seq
		if same := was && r.chosen[i].hash == e.Hash(); !same && r.report.Resealed == 0 {
			r.report.Resealed = e.Seq
		}
		if was {
			i++
		}
		if err := v.event(ctx, &e); err != nil {
			return err
		}
	}
	v.finish()
	r.report.Head = v.report.Head
	r.report.Unmended = r.doubts
	for _, d := range v.report.Defects {
		if d.Rule != "fork" || r.into == r.log {
			r.report.Unmended = append(r.report.Unmended, d)
		}
	}
	return nil
}

// replace puts the repaired session in the place of the damaged one.
func (r *repairer) replace(ctx context.Context) error {
	replacer, ok := As[Replacer](r.log.store)
	if !ok {
		return fmt.Errorf("replace its lines: %w", ErrUnsupported)
	}
	forks, err := r.log.forksSharing(ctx, r.session, cmp.Or(r.report.Resealed, r.last+1))
	if err != nil {
		return err
	}
	if len(forks) > 0 {
		return fmt.Errorf("%w: forked by %q behind event %d, which changes", ErrInUse, forks, r.report.Resealed)
	}
	if r.dry {
		return nil
	}
	return r.log.alone(ctx, r.session, func(ctx context.Context, st *state) (err error) {
		st.drop()
		st.cut = nil
		r.report.Copy, err = replacer.Replace(ctx, r.session, r.at, r.events(ctx, r.session, r.refork))
		r.log.disturb(r.session)
		r.report.Stored = r.last - r.start + 1
		return err
	})
}
