//go:build unix

package torture

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// kind is the kind of a step.
type kind string

const (
	note     kind = "note"     // one event
	batch    kind = "batch"    // several events, atomically
	spill    kind = "spill"    // an event whose data becomes a blob
	artifact kind = "artifact" // an event that refers to a blob
	snapshot kind = "snapshot" // a projection_snapshotted event; the state is inline or a blob
	move     kind = "move"     // a head_moved event
	forking  kind = "fork"     // a fork of the writer's own session
	redact   kind = "redact"   // erases the first event of an earlier step
)

// kinds has the probability of each kind, in percent.
var kinds = []struct {
	kind   kind
	weight int
}{{note, 38}, {batch, 22}, {spill, 12}, {artifact, 8}, {snapshot, 8}, {move, 3}, {forking, 5}, {redact, 4}}

// shared is the session that all writers append to.
const shared = "shared"

// stepsPerSession is after how many steps a writer begins a new session of its own.
const stepsPerSession = 50

// step is a writer's n-th step. It depends only on the seed, the writer and n.
type step struct {
	writer, n int
	kind      kind
	session   string
	events    []event.Event
	blob      string // the body of the blob that events refer to
	target    *step  // the step that a redact step erases
	anyHead   bool   // append without an expected head
}

// stepOf returns a writer's n-th step.
func stepOf(seed uint64, writer, n int) *step {
	r := rand.New(rand.NewPCG(seed, uint64(writer)<<32|uint64(n)))
	s := &step{writer: writer, n: n, kind: drawKind(r), session: ownSession(writer, n)}
	inShared := r.IntN(100) < 45
	s.anyHead = r.IntN(2) == 0
	first := n%stepsPerSession == 0 // it creates the writer's own session
	switch {
	case first:
		s.kind, s.anyHead = note, true
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

func ownSession(writer, n int) string { return fmt.Sprintf("own-%d-%d", writer, n/stepsPerSession) }

// targetOf picks an earlier step in the same session that can be redacted.
func targetOf(seed uint64, writer, n int, r *rand.Rand) *step {
	for range 5 {
		m := n - 1 - r.IntN(n%stepsPerSession)
		if s := stepOf(seed, writer, m); s.kind != redact && s.kind != forking && s.kind != move {
			return s
		}
	}
	return nil
}

// make returns the events of a step. writer.fork completes the fork event.
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

// note returns event i of n of a step.
func (s *step) note(seed uint64, r *rand.Rand, i, n, size int) event.Event {
	data := fmt.Appendf(nil, `{"step":%q,"i":%d,"of":%d,"text":%q}`, s, i, n, text(r, size))
	return event.Event{ID: idOf(seed, s.writer, s.n, i), Type: "test:note", Data: data}
}

// event returns event i of a step, with a known type.
func (s *step) event(seed uint64, i int, p event.Payload) event.Event {
	e := event.New(p)
	e.ID = idOf(seed, s.writer, s.n, i)
	return e
}

func (s *step) String() string { return fmt.Sprintf("%d/%d", s.writer, s.n) }

func ref(body string) event.BlobRef {
	return event.BlobRef{Blob: event.DigestOf([]byte(body)), Bytes: int64(len(body))}
}

// text returns n random bytes of text.
func text(r *rand.Rand, n int) string {
	b := make([]byte, 0, n+16)
	for len(b) < n {
		b = hex.AppendEncode(b, binary.BigEndian.AppendUint64(nil, r.Uint64()))
	}
	return string(b[:n])
}

// idOf returns the id of a step's event i. The id encodes the step.
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

// placeOf is the inverse of idOf. ok is false for an id of no step.
func placeOf(seed uint64, id ulid.ULID) (writer, n, i int, ok bool) {
	writer, n = int(binary.BigEndian.Uint16(id[8:])), int(binary.BigEndian.Uint32(id[10:]))
	i = int(binary.BigEndian.Uint16(id[14:]))
	return writer, n, i, id == idOf(seed, writer, n, i)
}
