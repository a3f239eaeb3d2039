package flow

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// records are the events of an open turn, by their place in the turn.
type records struct {
	session string
	turn    ulid.ULID
	start   event.TurnStart
	// seq is the turn_started, before is the seq before the append of the turn_started.
	seq, before int64
	input       Input
	// ownStart reports that the turn began in this session: its reserved snapshot id holds.
	ownStart bool
	// events are the events after the turn_started, in order.
	events []event.Event
	index  map[ulid.ULID]int // of the events that are no intents and no results, by id
	// at has the records by ordinal, and tops by their first number. steps is one more
	// than the largest of these numbers.
	at    map[string]*record
	tops  map[int]*top
	steps int
	// passed has the waits of other sessions that ended, by id.
	passed map[string]*waitRecord
	// shapes has the reviews, waits and cursors by ordinal, also of other sessions.
	shapes map[string]shape
	spent  spent
	point  point
	// last is the record of the newest intent.
	last *record
}

// record has the events of one ordinal.
type record struct {
	ordinal string
	intent  *event.EffectIntent // the newest intent
	// intended is the seq of the intent, and begun the last seq of the append of the first
	// intent. inherited reports that the intent is of another session.
	intended, begun int64
	inherited       bool
	done            *event.EffectCompletion // the result
	doneEvent       *event.Event
	seen            int64     // the newest event that the request of a model call has
	retryAt         time.Time // after a failed attempt
	failures        int       // attempts that failed
	review          *reviewRecord
	wait            *waitRecord
}

// top describes the records of one step of the turn: of an effect, a wait or a batch.
type top struct {
	size    int   // the number of effects that a batch began with; 0 if it is not known
	places  int   // one more than the largest place of a batch in the log; 0 if it is no batch
	reached int64 // the seq of the newest record, with the hibernation before the step
}

// reviewRecord is a review of this session.
type reviewRecord struct {
	request  event.ApprovalRequest
	seq      int64
	answer   *event.ApprovalResolution
	canceled bool
	erased   bool // the answer, with the arguments that it approved
}

// waitRecord is a wait of this session.
type waitRecord struct {
	start    event.Wait
	seq      int64
	point    point
	resolved *event.Wait
	ended    point // of resolved
}

// point is a place in the log that a turn has reached.
type point struct {
	seq  int64
	id   ulid.ULID
	time time.Time
}

// pointOf is the place of an event. A copy has the place of its original.
func pointOf(e *event.Event) point {
	p := point{seq: e.Seq, id: e.ID, time: e.Timestamp}
	if o, ok := e.Origin(); ok && !o.ID.IsZero() {
		p.id = o.ID
	}
	return p
}

// newRecords are the records of a turn that has none.
func newRecords(session string, turn ulid.ULID, seq int64) *records {
	return &records{session: session, turn: turn, seq: seq, at: map[string]*record{}, tops: map[int]*top{}, shapes: map[string]shape{}, passed: map[string]*waitRecord{}, index: map[ulid.ULID]int{}}
}

// snapshotID is the id of the snapshot at the end of the turn. A fork or a copy does not
// have the reserved id of the original.
func (r *records) snapshotID() string {
	if r.ownStart {
		return r.start.SnapshotID
	}
	return inheritedSnapshot(r.session, r.turn)
}

// inheritedSnapshot is the id for the end of a turn that began in another session.
func inheritedSnapshot(session string, turn ulid.ULID) string {
	return uuid.NewSHA1(uuid.Nil, []byte("snapshot/"+session+"/"+turn.String())).String()
}

// difference describes a difference between the turn function and the record at seq.
func (r *records) difference(seq int64, ordinal, member, recorded, got string) *DivergenceError {
	return &DivergenceError{Session: r.session, Turn: r.turn, Seq: seq, Ordinal: ordinal, Member: member,
		Recorded: recorded, Got: got, RecordedVersion: r.start.Version}
}

// own reports whether e belongs to this session. The reviews, waits and hibernations of
// a prefix or of an original do not count in a fork or a copy.
func (r *records) own(e *event.Event) bool { return e.SessionID == r.session && !e.Copied() }

// ordinal returns the record of an ordinal, a new one if there is none, for the event
// seq.
func (r *records) ordinal(ordinal string, seq int64) *record {
	x := r.at[ordinal]
	if x == nil {
		x = &record{ordinal: ordinal}
		r.at[ordinal] = x
	}
	r.reach(ordinal, seq)
	return x
}

// reach notes that the log has the records of an ordinal up to event seq.
func (r *records) reach(ordinal string, seq int64) {
	if n, place, ok := splitOrdinal(ordinal); ok {
		t := r.tops[n]
		if t == nil {
			t = &top{}
			r.tops[n] = t
		}
		t.places = max(t.places, place+1)
		t.reached = max(t.reached, seq)
		r.steps = max(r.steps, n+1)
	}
}

// splitOrdinal returns the step of an ordinal, and the place in the batch, -1 if there is
// none.
func splitOrdinal(ordinal string) (step, place int, ok bool) {
	first, rest, many := strings.Cut(ordinal, ".")
	step, err := strconv.Atoi(first)
	if err != nil || !many {
		return step, -1, err == nil
	}
	place, err = strconv.Atoi(rest)
	return step, place, err == nil
}

// step reports whether the log has a record of step n of the turn.
func (r *records) step(n int) bool { return r.tops[n] != nil }

// reached is the seq up to which the log has the records of step n; 0 if it has none.
func (r *records) reached(n int) int64 {
	if t := r.tops[n]; t != nil {
		return t.reached
	}
	return 0
}

// binds reports whether an answer is for the effect and the arguments of the review.
func (v *reviewRecord) binds(p *event.ApprovalResolution) bool {
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	return same(p.EffectID, v.request.EffectID) && same(string(p.ArgumentsDigest), string(v.request.ArgumentsDigest))
}

// wait returns the wait with an id, nil if the turn has none.
func (r *records) wait(id string) *waitRecord {
	for _, x := range r.at {
		if x.wait != nil && x.wait.start.WaitID == id {
			return x.wait
		}
	}
	return nil
}

// openWait returns the wait with an id that an effect may await; nil if the turn has none. In a fork, it
// may be a wait of another session that First has found to be the first.
func (r *records) openWait(id string) *waitRecord {
	if w := r.wait(id); w != nil || !r.awaited(id) {
		return w
	}
	return r.passed[id]
}

// onPath reports whether the outcomes of all effects are on the path. A head_moved may
// have left some of them.
func (r *records) onPath(t *projection.PathTurn) bool {
	for _, x := range r.at {
		if x.done == nil {
			continue
		}
		for _, e := range r.outcome(x) {
			if left(t, e.Seq) {
				return false
			}
		}
	}
	return true
}

// left reports whether a head_moved took event seq off the path of the turn.
func left(t *projection.PathTurn, seq int64) bool {
	return slices.ContainsFunc(t.Left, func(s event.Stretch) bool { return s.From <= seq && seq <= s.To })
}

// failedLast are the effects of the newest step that ended with an error which the history
// does not have. A wait that ended and a denial are no failures.
func (r *records) failedLast() (failed []*record) {
	for _, ordinal := range slices.Sorted(maps.Keys(r.at)) {
		x := r.at[ordinal]
		if n, _, ok := splitOrdinal(ordinal); !ok || n != r.steps-1 || x.intent == nil || x.done == nil || x.done.Error == nil {
			continue
		}
		kinds := []string{kindEffect, kindModel, kindCompaction}
		if slices.Contains(kinds, x.intent.Kind) && x.done.Error.Code != codeDenied {
			failed = append(failed, x)
		}
	}
	return failed
}

// single is the record of step n; nil if the log has none, or the step is a batch.
func (r *records) single(n int) *record {
	if t := r.tops[n]; t == nil || t.size > 0 {
		return nil
	}
	return r.at[strconv.Itoa(n)]
}

// result is the result of a finished effect.
func (r *records) result(x *record) (*settled, error) {
	s := &settled{key: x.done.Key, done: x.done, events: r.outcome(x), point: pointOf(x.doneEvent)}
	erased := func(e event.Event) bool { return e.Redacted() }
	if x.doneEvent.Redacted() || slices.ContainsFunc(s.events, erased) {
		return nil, fmt.Errorf("the result was erased: %w", ErrNeedsReconcile)
	}
	return s, nil
}

// outcome returns the events that are the outcome of a finished effect.
func (r *records) outcome(x *record) (events []event.Event) {
	for _, id := range x.done.EventIDs {
		if i, ok := r.index[id]; ok {
			events = append(events, r.events[i])
		}
	}
	return events
}
