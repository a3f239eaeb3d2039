package torture

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// kind is what a step does.
type kind string

const (
	note     kind = "note"     // an event by itself
	batch    kind = "batch"    // several events, atomically
	spill    kind = "spill"    // an event whose data becomes a blob
	artifact kind = "artifact" // an event that refers to a blob
	snapshot kind = "snapshot" // a projection_snapshotted, its state inline or a blob
	move     kind = "move"     // a head_moved
	forking  kind = "fork"     // a new session that shares the writer's own
	redact   kind = "redact"   // erases the events of an earlier step
)

// kinds are drawn from with these weights.
var kinds = []struct {
	kind   kind
	weight int
}{{note, 38}, {batch, 22}, {spill, 12}, {artifact, 8}, {snapshot, 8}, {move, 3}, {forking, 5}, {redact, 4}}

// shared is the session that all writers append to.
const shared = "shared"

// era is how many steps a writer's own session lasts.
const era = 50

// step is the n-th thing that a writer does, and follows from the seed, the
// writer and n alone.
type step struct {
	writer, n int
	kind      kind
	session   string
	events    []event.Event
	blob      string // the body that events refer to, to be put first
	target    *step  // what a redact erases
	anyway    bool   // appends to its own session without looking at its head
}

// stepOf is what writer does as its n-th step.
func stepOf(seed uint64, writer, n int) *step {
	r := rand.New(rand.NewPCG(seed, uint64(writer)<<32|uint64(n)))
	s := &step{writer: writer, n: n, kind: drawKind(r), session: ownSession(writer, n)}
	inShared := r.IntN(100) < 45
	s.anyway = r.IntN(2) == 0
	first := n%era == 0 // it makes the own session
	switch {
	case first:
		s.kind, s.anyway = note, true
	case s.kind == redact:
		if s.target = targetOf(seed, writer, n, r); s.target == nil {
			s.kind = note
		}
	}
	switch s.kind {
	case redact:
		s.session = s.target.session
	case forking:
		s.session = fmt.Sprintf("fork-%d-%d", writer, n)
	case move:
	default:
		if inShared && !first {
			s.session = shared
		}
	}
	s.events = s.make(seed, r)
	return s
}

func drawKind(r *rand.Rand) kind {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	at := r.IntN(total)
	for _, k := range kinds {
		if at -= k.weight; at < 0 {
			return k.kind
		}
	}
	return note
}

func ownSession(writer, n int) string { return fmt.Sprintf("own-%d-%d", writer, n/era) }

// targetOf draws an earlier step of the same era whose events can be redacted.
func targetOf(seed uint64, writer, n int, r *rand.Rand) *step {
	for range 5 {
		m := n - 1 - r.IntN(n%era)
		if s := stepOf(seed, writer, m); s.kind != redact && s.kind != forking && s.kind != move {
			return s
		}
	}
	return nil
}

// make makes the events of a step. The one that refers to the point of a fork
// is made by whoever does the step.
func (s *step) make(seed uint64, r *rand.Rand) []event.Event {
	switch s.kind {
	case batch:
		n := 2 + r.IntN(4)
		if r.IntN(10) == 0 {
			n = 30
		}
		events := make([]event.Event, n)
		for i := range events {
			events[i] = s.note(seed, r, i, n, r.IntN(200))
		}
		return events
	case spill:
		return []event.Event{s.note(seed, r, 0, 1, spillOver+r.IntN(20<<10))}
	case artifact:
		s.blob = text(r, 10+r.IntN(20<<10))
		return []event.Event{s.event(seed, 0, event.Artifact{ArtifactID: s.String(), Name: s.String(), Body: ref(s.blob)})}
	case snapshot:
		return []event.Event{s.event(seed, 0, s.snapshot(r))}
	case move:
		return []event.Event{s.event(seed, 0, event.HeadMove{To: r.Int64N(2), Reason: s.String()})}
	case forking:
		return []event.Event{{ID: idOf(seed, s.writer, s.n, 0), Type: event.SessionForked}, s.note(seed, r, 1, 2, r.IntN(100))}
	case redact:
		return nil
	default:
		return []event.Event{s.note(seed, r, 0, 1, r.IntN(500))}
	}
}

func (s *step) snapshot(r *rand.Rand) event.Snapshot {
	p := event.Snapshot{Projection: "torture", Version: 1, SnapshotID: s.String()}
	if r.IntN(2) == 0 {
		s.blob = text(r, 10+r.IntN(5000))
		p.Body = ref(s.blob)
	} else {
		p.State = fmt.Appendf(nil, `{"text":%q}`, text(r, r.IntN(2000)))
	}
	return p
}

// note is the i-th of n events of a step.
func (s *step) note(seed uint64, r *rand.Rand, i, n, size int) event.Event {
	data := fmt.Appendf(nil, `{"step":%q,"i":%d,"of":%d,"text":%q}`, s, i, n, text(r, size))
	return event.Event{ID: idOf(seed, s.writer, s.n, i), Type: "test:note", Data: data}
}

// event is the i-th event of a step, of one of the known types.
func (s *step) event(seed uint64, i int, p event.Payload) event.Event {
	e := event.New(p)
	e.ID = idOf(seed, s.writer, s.n, i)
	return e
}

func (s *step) String() string { return fmt.Sprintf("%d/%d", s.writer, s.n) }

func ref(body string) event.BlobRef {
	return event.BlobRef{Blob: event.DigestOf([]byte(body)), Bytes: int64(len(body))}
}

// text is n bytes that no two events have in common.
func text(r *rand.Rand, n int) string {
	b := make([]byte, 0, n+16)
	for len(b) < n {
		b = hex.AppendEncode(b, binary.BigEndian.AppendUint64(nil, r.Uint64()))
	}
	return string(b[:n])
}

// idOf is the id of a step's i-th event, which says what it is of.
func idOf(seed uint64, writer, n, i int) (id ulid.ULID) {
	const someday = 1_900_000_000_000
	if err := id.SetTime(someday + uint64(n)); err != nil {
		panic(err)
	}
	binary.BigEndian.PutUint16(id[6:], uint16(seed))
	binary.BigEndian.PutUint16(id[8:], uint16(writer))
	binary.BigEndian.PutUint32(id[10:], uint32(n))
	binary.BigEndian.PutUint16(id[14:], uint16(i))
	return id
}

// placeOf is what an id is of; ok is false for one that no step has.
func placeOf(seed uint64, id ulid.ULID) (writer, n, i int, ok bool) {
	writer, n = int(binary.BigEndian.Uint16(id[8:])), int(binary.BigEndian.Uint32(id[10:]))
	i = int(binary.BigEndian.Uint16(id[14:]))
	return writer, n, i, id == idOf(seed, writer, n, i)
}
