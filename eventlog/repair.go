package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"unicode/utf8"
)

// RepairOptions say where the events of a damaged session go. The zero value is
// a new session of the same log.
type RepairOptions struct {
	// As is the id of the session that is written. By default it is the damaged
	// session's with "-salvaged" behind it, or "-salvaged-2" and so on where that
	// is taken by something else; in another log, the same id.
	As string
	// Into is another log to write to, with the blobs that are needed and, for a
	// fork, its parents.
	Into *Log
	// InPlace puts the repaired session in the place of the damaged one, of
	// which the store keeps a copy first.
	InPlace bool
}

// RepairAction is what a repair does.
type RepairAction string

const (
	// RepairNone: the session is sound.
	RepairNone RepairAction = "none"
	// RepairCut: a torn tail is cut off, as the next append would; nothing that
	// was acknowledged is in it.
	RepairCut RepairAction = "cut"
	// RepairSalvage: the session is damaged. What stands before and after the
	// damage is written anew, with a lost event for each seq that is not there.
	RepairSalvage RepairAction = "salvage"
)

// Repair reports what a repair did, or would do.
type Repair struct {
	Session string
	Action  RepairAction
	// Path is where the session's lines are.
	Path string
	// Torn is the torn tail that was cut off, and Saved the file it was saved
	// to; or the one that salvage left out.
	Torn  TornTail
	Saved string
	// As is the session that was written.
	As string
	// Kept events were found, Stored of As were not there yet.
	Kept, Stored int64
	Lost         []LostRange
	Ignored      []Ignored
	// Resealed is the seq from which on lines are not what they were, 0 if none.
	Resealed int64
	// Copy is where what an InPlace repair replaced is kept.
	Copy string
	// Unmended are defects that stay: blobs that are missing, and events that are
	// not what the chain committed to.
	Unmended []Defect
	// Head is the repaired session's.
	Head Head
}

// LostRange are events that could not be read, and where they must have been.
type LostRange struct {
	From, To int64
	// Offset is -1 where there is no such place.
	Offset, Bytes int64
	Reason        string
}

// Ignored are lines that can be read and stay out.
type Ignored struct {
	Session       string
	From, To      int64
	Offset, Bytes int64
	Reason        string
}

// RepairError says why a session cannot be repaired. It matches ErrCorrupt.
type RepairError struct {
	Session, Path, Reason string
}

func (e *RepairError) Error() string {
	return fmt.Sprintf("beyond repair: %s: %s", e.Path, e.Reason)
}

// Is matches ErrCorrupt.
func (e *RepairError) Is(target error) bool { return target == ErrCorrupt }

// Repair makes a session readable and appendable again. A sound one is left
// alone; a torn tail is cut off. From a damaged one, all events that can be read
// are salvaged at their seqs into a new session (RepairOptions), and a lost event
// stands for each that cannot; the damaged session is not touched. A torn tail
// that acknowledged events may be in counts as damage.
//
// The salvaged session repeats the ids of the damaged one. The same repair gives
// the same lines, so one that was interrupted is finished by repeating it, and
// repeating one that is done changes nothing.
//
// ErrExists says that As is another session, ErrInUse that forks share events
// which an InPlace repair would change, a *RepairError that there is nothing to
// salvage, and ErrVersion that a newer program wrote to the session. A session
// that is changed by others during an InPlace repair is a *ConflictError: try
// again.
func (l *Log) Repair(ctx context.Context, session string, opts RepairOptions) (Repair, error) {
	return l.repair(ctx, session, opts, false)
}

// PlanRepair is Repair without doing it.
func (l *Log) PlanRepair(ctx context.Context, session string, opts RepairOptions) (Repair, error) {
	return l.repair(ctx, session, opts, true)
}

func (l *Log) repair(ctx context.Context, session string, opts RepairOptions, dry bool) (Repair, error) {
	if err := l.readable(ctx, session); err != nil {
		return Repair{}, err
	}
	if opts.As != "" {
		if err := CheckSessionID(opts.As); err != nil {
			return Repair{}, err
		}
	}
	if opts.InPlace && (opts.Into != nil || opts.As != "" && opts.As != session) {
		return Repair{}, fmt.Errorf("repair session %q: %w: in place and elsewhere", session, ErrInvalid)
	}
	for tries := 1; ; tries++ {
		r := repairer{log: l, into: l, opts: opts, dry: dry, report: Repair{Session: session, Action: RepairNone}}
		if opts.Into != nil {
			r.into = opts.Into
		}
		err := r.run(ctx, session)
		if errors.Is(err, ErrConflict) && tries < repairTries {
			continue // somebody appended meanwhile
		}
		if err != nil {
			return Repair{}, fmt.Errorf("repair session %q: %w", session, err)
		}
		return r.report, nil
	}
}

// repairTries is how often a repair is planned anew because the session has
// changed.
const repairTries = 5

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
		return nil
	case sound && r.into == r.log:
		return r.cut(ctx, torn)
	}
	return r.rescue(ctx, torn)
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

// parent finds out whether a fork's parent was repaired since, so that its event
// at the fork point has another hash. One that is missing or damaged keeps
// nobody from repairing the fork.
func (r *repairer) parent(ctx context.Context) error {
	if r.fork == nil || r.fork.Seq == 0 {
		return nil
	}
	f := *r.fork
	point, err := r.forkPoint(ctx, &f)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrEventNotFound) || errors.Is(err, ErrCorrupt) {
		return nil
	}
	if err != nil {
		return err
	}
	repaired := point.ID == f.EventID || point.Type.Name() == Lost
	if repaired && (point.ID != f.EventID || point.Hash() != f.Hash) {
		f.EventID, f.Hash = point.ID, point.Hash()
		r.refork = &f
	}
	return nil
}

// forkPoint is the parent's event at the fork point, in the log that is written
// to. A parent that is not there is copied or repaired into it, or else what
// that would give is looked at.
func (r *repairer) forkPoint(ctx context.Context, f *Fork) (Event, error) {
	if r.into != r.log {
		_, err := r.into.Head(ctx, f.Parent)
		switch missing := errors.Is(err, ErrNotFound); {
		case missing && r.dry:
			return r.planned(ctx, f.Parent, f.Seq)
		case missing:
			err = r.bring(ctx, f.Parent)
		}
		if err != nil {
			return Event{}, err
		}
	}
	return r.into.rawEvent(ctx, f.Parent, f.Seq)
}

// bring copies or repairs a session into the other log.
func (r *repairer) bring(ctx context.Context, session string) error {
	p, err := r.sibling(session)
	if err == nil {
		err = p.run(ctx, session)
	}
	if err == nil && p.report.Action != RepairSalvage {
		_, err = convert(ctx, r.into, r.log, session)
	}
	return err
}

// planned is an event of the lineage that a session will have in the other log.
func (r *repairer) planned(ctx context.Context, session string, seq int64) (Event, error) {
	p, err := r.sibling(session)
	if err == nil {
		err = p.run(ctx, session)
	}
	switch {
	case err != nil:
		return Event{}, err
	case p.report.Action != RepairSalvage:
		return r.log.rawEvent(ctx, session, seq)
	case seq < p.start && p.fork != nil:
		return p.planned(ctx, p.fork.Parent, seq)
	}
	for e, err := range p.events(ctx, p.report.As, p.refork) {
		if err != nil || e.Seq == seq {
			return e, err
		}
	}
	return Event{}, ErrEventNotFound
}

// sibling repairs another session in the same way.
func (r *repairer) sibling(session string) (*repairer, error) {
	seen := map[string]bool{r.session: true}
	maps.Copy(seen, r.seen)
	if seen[session] {
		return nil, &CorruptError{Session: session, Offset: -1, Cause: errForkCycle}
	}
	return &repairer{log: r.log, into: r.into, opts: RepairOptions{Into: r.into}, dry: r.dry, seen: seen,
		report: Repair{Session: session, Action: RepairNone}}, nil
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
