package sessions

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// Key identifies the event of a record to Session.Find and Session.Add.
type Key struct {
	// Own is the id that the source drew or counted for the record; empty if it has
	// none. An id that the source computes from content is none: see Drawn.
	Own string
	// Part numbers the events of one record: 0 is the record's own event.
	Part int
	// Unsteady says that another version of the file can have another own id for the
	// record, or none. Then the place of a redacted event with an own id counts, too.
	Unsteady bool
	// Unordered says that a later import can see the record after other records than the
	// first import did. Then a redacted event before the event of the record before counts,
	// too, if no later one does.
	Unordered bool
	// Digest is the digest of the record: Record.Key or Record.Digest. It is empty if
	// Own alone identifies the record, and for events that Find never looks for.
	Digest event.Digest
}

// Drawn reports whether an id of a source can be Key.Own. UUIDs of the versions 3 and 5
// are digests of content.
func Drawn(own string) bool {
	for field := range strings.FieldsSeq(own) {
		if len(field) == 36 && field[8] == '-' && field[13] == '-' && (field[14] == '3' || field[14] == '5') {
			return false
		}
	}
	return own != ""
}

// place is the random part of an event id. It depends on the place of the event, never
// on its content.
type place [10]byte

// ownPlace is the place of a record with an own id. variant numbers different records
// with one own id from 0.
func ownPlace(session, own string, variant, part int) place {
	b := append(append(begin(session, "own"), own...), 0)
	b = strconv.AppendInt(b, int64(variant), 10)
	return digest(strconv.AppendInt(append(b, 0), int64(part), 10))
}

// seqPlace is the place of any other event. The events that accompany a record's own
// event have their part in it.
func seqPlace(session string, seq int64, part int) place {
	b := strconv.AppendInt(begin(session, "seq"), seq, 10)
	if part > 0 {
		b = strconv.AppendInt(append(b, 0), int64(part), 10)
	}
	return digest(b)
}

func begin(session, kind string) []byte {
	b := append(make([]byte, 0, 256), "convlog id 1\x00"...)
	return append(append(append(append(b, session...), 0), kind...), 0)
}

func digest(b []byte) place {
	sum := sha256.Sum256(b)
	return place(sum[:10])
}

// id is the event id for a record of time t. A time before 1970 counts as 1970.
func (p place) id(t time.Time) ulid.ULID {
	var id ulid.ULID
	ms := max(t.UnixMilli(), 0)
	if t.IsZero() || uint64(ms) > ulid.MaxTime() {
		ms = 0
	}
	_ = id.SetTime(uint64(ms)) // the time is within bounds
	copy(id[6:], p[:])
	return id
}

// IsCounted reports whether the id of an event depends on its seq only, and not on an own
// id of its record. The event is a record's own event.
func IsCounted(e *event.Event) bool { return placeOf(e.ID) == seqPlace(e.SessionID, e.Seq, 0) }

func placeOf(id ulid.ULID) place { return place(id[6:]) }

// ForkID is the id of the session_forked of a session, whose record has time at.
func ForkID(session string, at time.Time) ulid.ULID {
	return ownPlace(session, session, 0, forkPart).id(at)
}

// forkPart is the part of a session_forked.
const forkPart = 1
