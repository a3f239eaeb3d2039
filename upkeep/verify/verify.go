// Package verify checks what is stored: every crc, the hash chain, seqs and
// appends, payloads and the rules of conversation, blobs, redactions, lineages, and
// snapshots against a replay. It continues past damage where the store can.
//
//	report, err := verify.Session(ctx, log, "order-42")
//	for _, d := range report.Defects {
//		fmt.Println(d)
//	}
package verify

import (
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// The rules of defects and notes. A rule of conversation has the name that
// event.ConversationRule gives it.
const (
	RuleCRC       = "crc"       // a line's checksum does not match
	RuleLine      = "line"      // a line cannot be read
	RuleSession   = "session"   // a line of another session
	RuleSeq       = "seq"       // an event is missing, repeated or misplaced
	RuleChain     = "chain"     // a hash does not follow from the event before
	RuleAppend    = "append"    // an append is incomplete
	RuleDuplicate = "duplicate" // two events have one id
	RuleBlob      = "blob"      // a blob is missing or damaged
	RulePayload   = "payload"   // a payload breaks the rules of its type
	RuleTree      = "tree"      // a tree event cannot be
	RuleFork      = "fork"      // the parent does not have the forked event
	RuleRedaction = "redaction" // an erasure that nothing explains, or that did not happen
	RuleVersion   = "version"   // written by a newer version
	RuleTorn      = "torn"      // bytes after the last complete append
	RuleHead      = "head"      // readers see fewer events than are stored
	RuleSnapshot  = "snapshot"  // a snapshot contradicts a replay
	RuleRole      = "unknown_role"
	RuleUnlisted  = "unlisted"   // a session with nothing but a torn tail
	RuleUnread    = "unreadable" // a session cannot be read
)

// Report is the result of checking one session.
type Report struct {
	Session string
	// Events and Bytes count the session's own lines that were read.
	Events, Bytes int64
	Head          event.Head
	// Parent is the session that this one is a fork of, or empty.
	Parent string
	// Defects are damage. Notes are worth knowing and no damage: rules that an
	// import broke and marked, losses that are known, marks that a replay
	// contradicts, and torn tails.
	Defects, Notes []eventlog.Defect
	// MoreDefects and MoreNotes count those beyond the first 1,000, which are not
	// listed.
	MoreDefects, MoreNotes int64
	// Snapshots counts the session's own snapshots. Checked counts the states and
	// marks that were compared with a replay, Skipped those that could not be.
	Snapshots, Checked, Skipped int64

	first int64 // the seq of the first event
}

// maxDefects bounds how many defects, and how many notes, a report lists.
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

// Damaged is how many defects were found.
func (r *Report) Damaged() int64 { return int64(len(r.Defects)) + r.MoreDefects }

// Has reports whether a listed defect has one of the rules.
func (r *Report) Has(rules ...string) bool {
	return slices.ContainsFunc(r.Defects, func(d eventlog.Defect) bool { return slices.Contains(rules, d.Rule) })
}

// Session checks one session: see Verifier.Session.
func Session(ctx context.Context, log *eventlog.Log, session string) (Report, error) {
	return New(log).Session(ctx, session)
}

// Lines checks the lines of one session: see Verifier.Lines.
func Lines(ctx context.Context, log *eventlog.Log, session string) (Report, error) {
	return New(log).Lines(ctx, session)
}

// Verifier checks the sessions of a log. Methods may be called concurrently: up to
// GOMAXPROCS sessions are read in parallel, and idle workers help with a large one.
// Each blob, and each ancestor of forks, is checked once.
type Verifier struct {
	log      *eventlog.Log
	engine   engine.Engine
	blobs    blobChecks
	lineages lineages
	seats    chan struct{} // one for each worker
	bytes    atomic.Int64
}

// New makes a Verifier for the sessions as they are from now on.
func New(log *eventlog.Log) *Verifier {
	return &Verifier{log: log, engine: engine.Of(log), seats: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Bytes is how many bytes of lines were read so far.
func (v *Verifier) Bytes() int64 { return v.bytes.Load() }

// Session checks everything about a session: its lines (see Lines), the lineage
// that it shares with ancestors, and its snapshots against a replay. Damage is
// reported, not returned. The error is for a missing session, and for a store that
// cannot be read.
func (v *Verifier) Session(ctx context.Context, session string) (Report, error) {
	report, err := v.Lines(ctx, session)
	if err != nil {
		return report, err
	}
	v.checkLineage(ctx, &report)
	v.checkSnapshots(ctx, &report)
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
	case v.seats <- struct{}{}:
		defer func() { <-v.seats }()
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
	const tries = 4
	for try := 1; ; try++ {
		before := v.version(ctx, session)
		report, err := v.read(ctx, session)
		// A writer that cut a tail or replaced lines may have looked like damage.
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

// Events checks the events of a session that no store holds yet, in order, as Lines
// checks stored ones.
func (v *Verifier) Events(ctx context.Context, session string, events iter.Seq2[event.Event, error]) (Report, error) {
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

// Store yields the damage of a store outside its listed sessions, such as a broken
// index. A defect with RuleUnlisted names a session that has nothing but a torn
// tail.
func Store(ctx context.Context, log *eventlog.Log) iter.Seq2[eventlog.Defect, error] {
	checker, ok := eventlog.As[eventlog.Checker](log.Store())
	if !ok {
		return func(func(eventlog.Defect, error) bool) {}
	}
	return checker.Check(ctx)
}

// TornTails lists the torn tails of all sessions, also of sessions that have
// nothing else and are not listed. An error with a TornTail that names a session
// concerns that session alone; iteration may continue.
func TornTails(ctx context.Context, log *eventlog.Log) iter.Seq2[eventlog.TornTail, error] {
	return tornTails(ctx, log, "")
}

func tornTails(ctx context.Context, log *eventlog.Log, session string) iter.Seq2[eventlog.TornTail, error] {
	tails, ok := eventlog.As[eventlog.TailKeeper](log.Store())
	if !ok {
		return func(func(eventlog.TornTail, error) bool) {}
	}
	return tails.TornTails(ctx, session)
}

// Unreadable is the defect of a session that cannot be read.
func Unreadable(session string, err error) eventlog.Defect {
	d := eventlog.Defect{Session: session, Offset: -1, Rule: RuleUnread, Detail: err.Error()}
	var corrupt *eventlog.CorruptError
	if errors.As(err, &corrupt) {
		d.Path, d.Offset, d.Seq, d.Detail = corrupt.Path, corrupt.Offset, corrupt.Seq, corrupt.Cause.Error()
	}
	return d
}
