package sessions

import (
	"cmp"
	"crypto/sha256"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/records"
)

// index finds the events of a session for the records of one import. A record finds an
// event once.
type index struct {
	sessions []string // the session and the ancestors whose events it shares
	places   map[place]seq32
	// digests has the newest event with a Key.Digest that is not redacted, and earlier the event
	// with the same digest before it.
	digests  map[shortened]seq32
	earlier  map[int64]int64
	digested seqs            // the events of digests and earlier
	redacted []redactedEvent // by seq
	isErased map[int64]bool  // seqs of all redacted events
	matched  seqs
	// borrowed maps redacted events to an equal later event, which the record could have
	// found instead.
	borrowed map[int64]int64
	// first is the seq of the first event that counts, last the event of the record before.
	first, last int64
}

// seq32 is the seq of an event. A session with 2^32 events does not fit into memory.
type seq32 uint32

// shortened stands for a Key.Digest: a part of its SHA-256.
type shortened [12]byte

func shorten(d event.Digest) shortened {
	sum := sha256.Sum256([]byte(d))
	return shortened(sum[:])
}

// seqs is a set of seqs, with a bit for each.
type seqs []uint64

func (s seqs) has(seq int64) bool { return seq/64 < int64(len(s)) && s[seq/64]&(1<<(seq%64)) != 0 }

func (s *seqs) add(seq int64) {
	for seq/64 >= int64(len(*s)) {
		*s = append(*s, 0)
	}
	(*s)[seq/64] |= 1 << (seq % 64)
}

// end is greater than every seq of the set.
func (s seqs) end() int64 { return int64(len(s)) * 64 }

func (s seqs) remove(seq int64) {
	if s.has(seq) {
		s[seq/64] &^= 1 << (seq % 64)
	}
}

// redactedEvent is a redacted event. If it is counted, only its place identifies it.
type redactedEvent struct {
	seq     int64
	shape   Shape
	counted bool
}

func newIndex() index {
	return index{
		places: map[place]seq32{}, digests: map[shortened]seq32{}, earlier: map[int64]int64{}, isErased: map[int64]bool{}, borrowed: map[int64]int64{},
	}
}

// add indexes an event of the log.
func (x *index) add(e *event.Event) error {
	x.addSession(e)
	at := placeOf(e.ID)
	x.places[at] = seq32(e.Seq)
	if !e.Redacted() {
		x.say(records.DigestOf(e), e.Seq)
		return nil
	}
	x.isErased[e.Seq] = true
	shape, err := KeptShape(e)
	x.redacted = append(x.redacted, redactedEvent{e.Seq, shape, IsCounted(e)})
	return err
}

// addSession notes the session of an event of the log.
func (x *index) addSession(e *event.Event) {
	if n := len(x.sessions); n == 0 || x.sessions[n-1] != e.SessionID {
		x.sessions = append(x.sessions, e.SessionID)
	}
}

// withDigest yields the seqs of the events with a digest, from the newest.
func (x *index) withDigest(d event.Digest) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for seq := int64(x.digests[shorten(d)]); seq > 0 && yield(seq); {
			seq = x.earlier[seq]
		}
	}
}

func (x *index) hasDigest(d event.Digest, seq int64) bool {
	for at := range x.withDigest(d) {
		if at <= seq {
			return at == seq
		}
	}
	return false
}

// say notes the digest of an event, which is newer than the events before. An event without a
// digest is none of digested.
func (x *index) say(d event.Digest, seq int64) {
	if d == "" {
		return
	}
	short := shorten(d)
	if before := int64(x.digests[short]); before > 0 {
		x.earlier[seq] = before
	}
	x.digests[short] = seq32(seq)
	x.digested.add(seq)
}

// forget removes the newest event, which was added and is not appended.
func (x *index) forget(e *event.Event) {
	at := placeOf(e.ID)
	seq := int64(x.places[at])
	delete(x.places, at)
	x.matched.remove(seq)
	if !x.digested.has(seq) {
		return
	}
	x.digested.remove(seq)
	short := shorten(records.DigestOf(e))
	if x.digests[short] = seq32(x.earlier[seq]); x.digests[short] == 0 {
		delete(x.digests, short)
	}
	delete(x.earlier, seq)
}

// own finds an event by the record's own id. Without a digest it is the first variant. The
// digest does not matter for an event of an ancestor, because a program writes the id of its
// session into the copy of a record, and for an event without one.
func (x *index) own(k Key) (m Match) {
	for i, session := range slices.Backward(x.sessions) {
		isAncestor := i < len(x.sessions)-1
		for v := 0; ; v++ {
			at, ok := x.places[ownPlace(session, k.Own, v, k.Part)]
			seq := int64(at)
			switch {
			case !ok:
			case seq < x.first:
			case x.isErased[seq] && (m.Seq == 0 || x.matched.has(m.Seq)):
				m = Match{Seq: seq, Withheld: true}
			case x.isErased[seq]:
			case k.Digest == "" || !x.matched.has(seq) && (isAncestor || !x.digested.has(seq) || x.hasDigest(k.Digest, seq)):
				return Match{Seq: seq}
			}
			if !ok || k.Digest == "" {
				break
			}
		}
	}
	return m
}

// equal is the next event with the digest: the first one after the record before, or else
// the first one.
func (x *index) equal(d event.Digest) (seq int64) {
	if d == "" {
		return 0
	}
	next := int64(0)
	for at := range x.withDigest(d) {
		switch {
		case at < x.first || x.matched.has(at):
		case at > x.last:
			next = at
		default:
			seq = at
		}
	}
	if next > 0 {
		return next
	}
	return seq
}

// place finds the redacted event of a record: the first one of its shape after the record
// before. equal is the event with the record's digest, 0 if there is none. A redacted
// event before equal is preferred, because a file has the records in order.
func (x *index) place(k *Key, shape func() Shape, equal int64) (m Match) {
	if len(x.redacted) == 0 || shape == nil || 0 < equal && equal < x.last {
		return Match{Seq: equal}
	}
	s := shape()
	from, _ := slices.BinarySearchFunc(x.redacted, x.last+1, func(e redactedEvent, seq int64) int { return cmp.Compare(e.seq, seq) })
	if at := x.erased(x.redacted[from:], k, &s, equal); at > 0 {
		if equal > 0 {
			x.borrowed[at] = equal
		}
		return Match{Seq: at, Withheld: true}
	}
	if equal > 0 {
		return Match{Seq: equal}
	}
	if at := x.erased(x.redacted[:from], k, &s, 0); at > 0 && k.Unordered {
		return Match{Seq: at, Withheld: true}
	}
	return x.take(&s)
}

// erased is the first of the redacted events that a record of the shape can be; 0 if none
// comes before the event equal.
func (x *index) erased(all []redactedEvent, k *Key, s *Shape, equal int64) int64 {
	for i := range all {
		e := &all[i]
		if 0 < equal && equal < e.seq {
			break
		}
		if e.seq >= x.first && !x.matched.has(e.seq) && (e.counted || k.Unsteady) && s.Fits(&e.shape) {
			return e.seq
		}
	}
	return 0
}

// take gives a record a redacted event that a record with an equal event has found.
func (x *index) take(s *Shape) (m Match) {
	for i := range x.redacted {
		e := &x.redacted[i]
		other, ok := x.borrowed[e.seq]
		if ok && !x.matched.has(other) && s.Fits(&e.shape) {
			delete(x.borrowed, e.seq)
			x.matched.add(other)
			return Match{Seq: e.seq, Withheld: true}
		}
	}
	return Match{}
}

// find finds the event of a record.
func (x *index) find(k Key, shape func() Shape) (m Match) {
	if Drawn(k.Own) {
		m = x.own(k)
	}
	if m.Seq == 0 {
		m = x.place(&k, shape, x.equal(k.Digest))
	}
	if m.Seq > 0 {
		x.matched.add(m.Seq)
		x.last = m.Seq
	}
	return m
}
