package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
)

// Report is what Verify found in one session.
type Report struct {
	Session string
	// Events and Bytes count the session's own lines that were read.
	Events, Bytes int64
	Head          Head
	// Parent is the session that this one is a fork of, if it is one. Snapshots
	// counts its own; whether they hold what they should is not Verify's to know.
	Parent    string
	Snapshots int64
	// Defects are damage. Notes are what is worth knowing and no damage: rules of
	// conversation that an import broke and marked, what was lost and is known to
	// be, and the torn tail that an unfinished write left.
	Defects, Notes []Defect
	// MoreDefects and MoreNotes count those beyond the first 1,000, which are
	// not listed.
	MoreDefects, MoreNotes int64
}

// Defect locates something wrong.
type Defect struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq,omitzero"`
	// Path and Offset locate the line where the store has such a place; Offset
	// is -1 where it does not.
	Path   string `json:"path,omitzero"`
	Offset int64  `json:"offset"`
	// Rule is a short name: crc, line, session, seq, chain, append, duplicate, blob,
	// payload, tree, fork, redaction, version, torn, head, or that of a rule of
	// conversation: orphan_result, duplicate_call, empty_message, unknown_role. What
	// projection.VerifySnapshots finds is of the rule snapshot.
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
}

func (d Defect) String() string {
	where := d.Path
	if where != "" && d.Offset >= 0 {
		where += fmt.Sprintf(" byte %d", d.Offset)
	}
	if d.Session != "" {
		who := fmt.Sprintf("session %q", d.Session)
		if d.Seq > 0 {
			who += fmt.Sprintf(" event %d", d.Seq)
		}
		if where != "" {
			who += " (" + where + ")"
		}
		where = who
	}
	return fmt.Sprintf("%s: %s: %s", where, d.Rule, d.Detail)
}

// maxDefects bounds how many defects, and how many notes, a report lists.
const maxDefects = 1000

func (r *Report) addDefect(d Defect) { add(&r.Defects, &r.MoreDefects, d) }
func (r *Report) addNote(d Defect)   { add(&r.Notes, &r.MoreNotes, d) }

func add(list *[]Defect, more *int64, d Defect) {
	if len(*list) < maxDefects {
		*list = append(*list, d)
	} else {
		*more++
	}
}

// Verify checks all that is stored of a session itself: every crc, the chain,
// seqs and appends, JSON, payloads and the rules of conversation, ids, blobs
// and redactions, a fork's parent, and what stands behind the last complete
// append. It goes on behind damage, if the store can. Damage is reported, not
// returned as an error; the error is for a missing session and for what kept
// Verify from looking.
func (l *Log) Verify(ctx context.Context, session string) (Report, error) {
	return l.NewVerifier().Verify(ctx, session)
}

// Verifier verifies sessions of a log. It may be used by several at a time; each
// blob is checked once. As many of them as there are processors read at the same
// time, and a single one is helped by those that are idle.
type Verifier struct {
	log   *Log
	blobs blobChecks
	seats chan struct{} // of those who work
	bytes atomic.Int64
}

// NewVerifier makes a Verifier for the sessions as they are from now on.
func (l *Log) NewVerifier() *Verifier {
	return &Verifier{log: l, seats: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Bytes is how much was read so far, of sessions that are done and those that
// are not.
func (v *Verifier) Bytes() int64 { return v.bytes.Load() }

// Verify is Log.Verify.
func (v *Verifier) Verify(ctx context.Context, session string) (Report, error) {
	if err := v.log.readable(ctx, session); err != nil {
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
		// A writer that cut a tail, or put other lines in their place, may have
		// looked like damage.
		if err != nil || try == tries || report.plain() || v.version(ctx, session) == before {
			return report, err
		}
	}
}

// plain reports that nothing was found that a writer could have brought about
// while the session was read.
func (r *Report) plain() bool {
	return len(r.Defects) == 0 && !slices.ContainsFunc(r.Notes, func(d Defect) bool { return d.Rule == tornRule })
}

// version is what the store's Versioner says; 0 if it has none.
func (v *Verifier) version(ctx context.Context, session string) uint64 {
	if versioner, ok := As[Versioner](v.log.store); ok {
		if version, err := versioner.Version(ctx, session); err == nil {
			return version
		}
	}
	return 0
}

// read verifies a session as it is now. What stands behind the last complete
// append is looked for only where something is: finding it may mean to read far
// back.
func (v *Verifier) read(ctx context.Context, session string) (Report, error) {
	r := v.reader(session)
	err := r.run(ctx)
	if err == nil && !r.ragged() {
		return r.report, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Report{}, err
	}
	v.bytes.Add(-r.counted)
	r = v.reader(session)
	if err := r.tail(ctx); err != nil {
		return Report{}, err
	}
	err = r.run(ctx)
	return r.report, err
}

func (v *Verifier) reader(session string) *verifyReader {
	r := &verifyReader{Verifier: v, verifier: v.log.verifier(session), tornAt: math.MaxInt64}
	r.inspector.blobs = &v.blobs
	return r
}

// Check looks for what is wrong with the store and with none of its listed
// sessions: see Checker. A store that is none has nothing of the kind.
func (l *Log) Check(ctx context.Context) iter.Seq2[Defect, error] {
	checker, ok := As[Checker](l.store)
	if !ok {
		return func(func(Defect, error) bool) {}
	}
	return checker.Check(ctx)
}

// TornTails lists what unfinished writes have left behind the last complete
// appends of all sessions, also of those that have none and so are not listed
// by Sessions. An error beside a TornTail that names a session is of that
// session alone, and the others follow.
func (l *Log) TornTails(ctx context.Context) iter.Seq2[TornTail, error] {
	lister, ok := As[TailLister](l.store)
	if !ok {
		return func(func(TornTail, error) bool) {}
	}
	return lister.TornTails(ctx, "")
}
