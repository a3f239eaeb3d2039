package sessions

import (
	"cmp"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/records"
)

// index finds the events of a session for the records of one import. A record finds an
// event once.
type index struct {
	sessions []string // the session and the ancestors whose events it shares
	places   map[place]int64
	said     []said                   // of the events that are not redacted, by seq
	digests  map[event.Digest][]int64 // the seqs in said, by digest; nil until Find needs it
	redacted []redactedEvent          // by seq
	isErased map[int64]bool           // seqs of all redacted events
	matched  map[int64]bool
	// undigested are the seqs of events without a digest of their record.
	undigested map[int64]bool
	// borrowed maps redacted events to an equal later event, which the record could have
	// found instead.
	borrowed map[int64]int64
	// first is the seq of the first event that counts, last the event of the record before.
	first, last int64
}

// said is the Key.Digest of an event.
type said struct {
	digest event.Digest
	seq    int64
}

// redactedEvent is a redacted event. If it is counted, only its place identifies it.
type redactedEvent struct {
	seq     int64
	shape   Shape
	counted bool
}

func newIndex() index {
	return index{
		places: map[place]int64{}, isErased: map[int64]bool{}, matched: map[int64]bool{},
		borrowed: map[int64]int64{}, undigested: map[int64]bool{},
	}
}

// add indexes an event of the log.
func (x *index) add(e *event.Event) error {
	x.addSession(e)
	at := placeOf(e.ID)
	x.places[at] = e.Seq
	if !e.Redacted() {
		if d := records.DigestOf(e); d != "" {
			x.said = append(x.said, said{d, e.Seq})
		} else {
			x.undigested[e.Seq] = true
		}
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

// withDigest are the seqs of the events with a digest, ascending.
func (x *index) withDigest(d event.Digest) []int64 {
	if x.digests == nil {
		x.digests = make(map[event.Digest][]int64, len(x.said))
		for _, s := range x.said {
			x.digests[s.digest] = append(x.digests[s.digest], s.seq)
		}
	}
	return x.digests[d]
}

// say notes the digest of an event that the import adds.
func (x *index) say(d event.Digest, seq int64) {
	if d == "" {
		x.undigested[seq] = true
		return
	}
	x.said = append(x.said, said{d, seq})
	if x.digests != nil {
		x.digests[d] = append(x.digests[d], seq)
	}
}

// own finds an event by the record's own id. Without a digest it is the first variant. The
// digest does not matter for an event of an ancestor, because a program writes the id of its
// session into the copy of a record, and for an event without one.
func (x *index) own(k Key) (m Match) {
	for i, session := range slices.Backward(x.sessions) {
		isAncestor := i < len(x.sessions)-1
		for v := 0; ; v++ {
			seq, ok := x.places[ownPlace(session, k.Own, v, k.Part)]
			switch {
			case !ok:
			case seq < x.first:
			case x.isErased[seq] && (m.Seq == 0 || x.matched[m.Seq]):
				m = Match{Seq: seq, Withheld: true}
			case x.isErased[seq]:
			case k.Digest == "" || !x.matched[seq] && (isAncestor || x.undigested[seq] || slices.Contains(x.withDigest(k.Digest), seq)):
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
	for _, at := range x.withDigest(d) {
		switch {
		case at < x.first || x.matched[at]:
		case at > x.last:
			return at
		case seq == 0:
			seq = at
		}
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
		if e.seq >= x.first && !x.matched[e.seq] && (e.counted || k.Unsteady) && s.Fits(&e.shape) {
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
		if ok && !x.matched[other] && s.Fits(&e.shape) {
			delete(x.borrowed, e.seq)
			x.matched[other] = true
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
		x.matched[m.Seq] = true
		x.last = m.Seq
	}
	return m
}
