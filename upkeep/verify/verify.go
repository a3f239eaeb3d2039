// Package verify checks stored sessions: every crc, the hash chain, seqs and appends,
// payloads and the rules of conversation, blobs, redactions, the parents of forks, and
// snapshots against a replay. It continues past damage if the store can.
//
//	report, err := verify.Session(ctx, log, "order-42")
//	for _, d := range report.Defects {
//		fmt.Println(d)
//	}
package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/regular"
	"github.com/convlog/convlog/internal/storenotes"
)

// Rules of defects that a caller treats in its own way. Defect.Rule of another defect is
// one of the words in rules.go, or the name of a rule of conversation
// (event.Rule).
const (
	RuleFork     = "fork"     // the parent does not have the forked event
	RuleVersion  = "version"  // a newer version wrote it
	RuleTorn     = "torn"     // bytes after the last complete append
	RuleHistory  = "history"  // a known head is not in the session: it was rolled back or replaced
	RuleSnapshot = "snapshot" // a snapshot contradicts a replay
	RuleUnlisted = "unlisted" // a session with a torn tail only
	RuleErasing  = "erasing"  // an erasure was interrupted
	// RuleWatermark is no damage: it says how old the knowledge of the store about its own
	// end is.
	RuleWatermark = "watermark"
)

// Report is the result of checking one session.
type Report struct {
	Session string
	// Events and Bytes count the session's own readable lines.
	Events, Bytes int64
	Head          event.Head
	// Parent is the parent of a fork, or "".
	Parent string
	// Defects are damage. Notes are not: rules that an import broke and marked, known
	// losses, marks that a replay contradicts, torn tails, and events that are void by
	// the rules of turns and runs.
	Defects, Notes []eventlog.Defect
	// MoreDefects and MoreNotes count the defects and notes after the first 1,000,
	// which are not listed.
	MoreDefects, MoreNotes int64
	// Snapshots counts the session's own snapshots. Checked counts the states and
	// marks that were compared with a replay; Skipped counts the others.
	Snapshots, Checked, Skipped int64

	first int64 // the seq of the first event
}

// maxDefects is the largest number of defects, and of notes, in a report.
const maxDefects = 1000

func (r *Report) addDefect(d eventlog.Defect) { addTo(&r.Defects, &r.MoreDefects, d) }
func (r *Report) addNote(d eventlog.Defect)   { addTo(&r.Notes, &r.MoreNotes, d) }

func addTo(list *[]eventlog.Defect, more *int64, d eventlog.Defect) {
	if len(*list) < maxDefects {
		*list = append(*list, d)
	} else {
		*more++
	}
}

// Damaged is the number of defects, listed or not.
func (r *Report) Damaged() int64 { return int64(len(r.Defects)) + r.MoreDefects }

// Has reports whether a listed defect has one of the rules.
func (r *Report) Has(rules ...string) bool {
	return slices.ContainsFunc(r.Defects, func(d eventlog.Defect) bool { return slices.Contains(rules, d.Rule) })
}

// Session checks one session: see Verifier.Session.
func Session(ctx context.Context, log *eventlog.Log, session string, opts ...Options) (Report, error) {
	return New(log, opts...).Session(ctx, session)
}

// Options configure a Verifier. The zero value is ready for use.
type Options struct {
	// Heads has known heads by session, for example the heads that appends returned. The
	// chain protects the events before a head only if the head is kept
	// outside the store: a session that was rolled back to an earlier state, or made anew
	// with other events, is consistent by itself. A head that is not in the session or
	// its lineage is a defect of RuleHistory; that a session was removed on purpose is a note.
	Heads map[string][]event.Head
}

// Verifier checks the sessions of a log. Its methods may be called concurrently. It
// checks up to GOMAXPROCS sessions in parallel, and idle workers help with a large
// session. It checks each blob, and each ancestor of forks, once.
type Verifier struct {
	log      *eventlog.Log
	engine   engine.Engine
	heads    map[string][]event.Head
	blobs    blobChecks
	lineages lineages
	removals func(context.Context) (*storenotes.Notes, error)
	slots    chan struct{} // one for each worker
	bytes    atomic.Int64
}

// New makes a Verifier. It remembers checked blobs and ancestors: make a new one to
// check them again.
func New(log *eventlog.Log, opts ...Options) *Verifier {
	v := &Verifier{log: log, engine: engine.Of(log), slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	if len(opts) > 0 {
		v.heads = opts[0].Heads
	}
	var once sync.Once
	var marks *storenotes.Notes
	var err error
	v.removals = func(ctx context.Context) (*storenotes.Notes, error) {
		once.Do(func() { marks, err = storenotes.Load(ctx, log) })
		return marks, err
	}
	return v
}

// Bytes is the number of bytes of lines that were read so far.
func (v *Verifier) Bytes() int64 { return v.bytes.Load() }

// Session checks the lines of a session (see Lines), the ancestors of a fork, the
// snapshots against a replay, and the known heads. Damage is in the report, and a missing session that has
// known heads is damage. Session returns an error only if another session is missing, or the store cannot be
// read.
func (v *Verifier) Session(ctx context.Context, session string) (Report, error) {
	report, err := v.Lines(ctx, session)
	if errors.Is(err, eventlog.ErrNotFound) && len(v.heads[session]) > 0 {
		return v.missingSession(ctx, session)
	}
	if err != nil {
		return report, err
	}
	v.checkLineage(ctx, &report)
	v.checkSnapshots(ctx, &report)
	v.checkHeads(ctx, &report)
	v.noteErasures(ctx, &report)
	return report, ctx.Err()
}

// Lines checks the stored bytes of a session: every crc, the chain, seqs and
// appends, JSON, payloads and the rules of conversation, ids, blobs and redactions,
// a fork's parent, and bytes after the last complete append.
func (v *Verifier) Lines(ctx context.Context, session string) (Report, error) {
	if err := v.engine.Usable(ctx, session); err != nil {
		return Report{}, err
	}
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
	const tries = 4
	for try := 1; ; try++ {
		before := v.version(ctx, session)
		report, err := v.read(ctx, session)
		// A concurrent writer that cuts a tail or replaces lines may look like damage.
		if err != nil || try == tries || report.stable() || v.version(ctx, session) == before {
			return report, err
		}
	}
}

// stable reports that no finding could be the effect of a concurrent writer.
func (r *Report) stable() bool {
	return len(r.Defects) == 0 && !slices.ContainsFunc(r.Notes, func(d eventlog.Defect) bool { return d.Rule == RuleTorn })
}

// version is the store's version of the session; 0 if it has none.
func (v *Verifier) version(ctx context.Context, session string) uint64 {
	if versioner, ok := eventlog.As[eventlog.Versioner](v.log.Store()); ok {
		if version, err := versioner.Version(ctx, session); err == nil {
			return version
		}
	}
	return 0
}

// read checks a session as it is now. It looks for a torn tail only if something
// suggests one: finding it may mean to read far back.
func (v *Verifier) read(ctx context.Context, session string) (Report, error) {
	r := v.reader(session)
	err := r.run(ctx)
	if err == nil && !r.ragged() {
		return r.report, nil
	}
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return Report{}, err
	}
	v.bytes.Add(-r.counted)
	r = v.reader(session)
	if err := r.findTail(ctx); err != nil {
		return Report{}, err
	}
	err = r.run(ctx)
	return r.report, err
}

func (v *Verifier) reader(session string) *reader {
	return &reader{Verifier: v, checker: v.checker(session), tornAt: math.MaxInt64}
}

// Events checks events that are not stored yet, in order, as Lines checks stored
// events.
func (v *Verifier) Events(ctx context.Context, session string, events iter.Seq2[event.Event, error]) (Report, error) {
	if err := v.engine.Usable(ctx, session); err != nil {
		return Report{}, err
	}
	if events == nil {
		return Report{}, fmt.Errorf("%w: the events to verify", event.ErrNilArgument)
	}
	c := v.checker(session)
	for e, err := range events {
		if err == nil {
			err = c.event(ctx, &e)
		}
		if err != nil {
			return Report{}, err
		}
	}
	c.finish()
	return c.report, nil
}

// Store yields the damage of a store outside its listed sessions, for example a broken
// index. A defect with RuleUnlisted names a session with a torn tail only. A defect with
// RuleErasing is an interrupted erasure, which erase.Finish completes; Store waits for a
// running one. A defect with RuleWatermark is no damage.
func Store(ctx context.Context, log *eventlog.Log) iter.Seq2[eventlog.Defect, error] {
	if err := engine.Of(log).Usable(ctx); err != nil {
		return errorSequence[eventlog.Defect](err)
	}
	return func(yield func(eventlog.Defect, error) bool) {
		d, err := unfinishedErasure(ctx, log)
		if special := new(regular.Error); errors.As(err, &special) {
			err = nil // the check of the store reports it
		}
		if (d.Rule != "" || err != nil) && !yield(d, err) {
			return
		}
		if checker, ok := eventlog.As[eventlog.Checker](log.Store()); ok {
			checker.Check(ctx)(yield)
		}
	}
}

// unfinishedErasure reports an interrupted erasure. A running one holds the store lock.
func unfinishedErasure(ctx context.Context, log *eventlog.Log) (d eventlog.Defect, err error) {
	eraser, ok := eventlog.As[eventlog.Eraser](log.Store())
	if !ok {
		return d, nil
	}
	unfinished, err := eraser.Erasing(ctx)
	if err != nil || unfinished.Done() {
		return d, err
	}
	err = engine.Of(log).Locked(ctx, false, func(ctx context.Context) (err error) {
		unfinished, err = eraser.Erasing(ctx)
		return err
	})
	if errors.Is(err, eventlog.ErrReadOnly) {
		err = nil // nothing can be running
	}
	if err != nil || unfinished.Done() {
		return d, err
	}
	return eventlog.Defect{Offset: -1, Rule: RuleErasing, Detail: unfinished.String()}, nil
}

// TornTails yields the torn tails of all sessions, and of unlisted sessions with a torn
// tail only. If an error comes with a TornTail that names a session, it concerns that
// session alone, and the caller may continue.
func TornTails(ctx context.Context, log *eventlog.Log) iter.Seq2[eventlog.TornTail, error] {
	return tornTails(ctx, log, "")
}

func tornTails(ctx context.Context, log *eventlog.Log, session string) iter.Seq2[eventlog.TornTail, error] {
	if err := engine.Of(log).Usable(ctx); err != nil {
		return errorSequence[eventlog.TornTail](err)
	}
	tails, ok := eventlog.As[eventlog.TailKeeper](log.Store())
	if !ok {
		return func(func(eventlog.TornTail, error) bool) {}
	}
	return tails.TornTails(ctx, session)
}

// errorSequence is a sequence with an error only.
func errorSequence[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}
