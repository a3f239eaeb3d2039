package sessions

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/interop/internal/records"
)

// owners finds the session that owns a record, by the id that the program gave the record.
// Programs copy records with their ids and times into the files of other sessions.
//
// An owner was active at the time of the record. So owners lists the sessions of the log
// once, and reads those that were active then. It keeps eight bytes of the id of each
// event, which also a redacted event has, and of the digest of its record, and no ids or texts
// of the program. The files of
// one import share it. It has the events that they add, too.
type owners struct {
	log *eventlog.Log

	mu     sync.Mutex
	listed bool
	all    []*owner
	byID   map[string]int32
	byDay  map[int64]*activeOn
	// copies are the sessions that began as copies without their originals: records can be
	// older than the session.
	copies []int32
	// copiesOf are the sessions whose CopiesFrom has an id.
	copiesOf map[string][]string
	// places are the beginnings of the ids of events, which depend on the session. The value says
	// that the event is redacted.
	places map[shortPlace]bool
	// added are the sessions that are new in this import, by a short digest of the own ids of their
	// records. others are further sessions with the same digest. So a record is compared with few
	// of them.
	added  map[uint32]int32
	others map[uint32][]int32
	seed   maphash.Seed
	// contents are the owners of records without a lasting id, by the digest and the time of the
	// record; of a redacted event, by its whole id.
	contents map[uint64]int32
}

// activeOn are the sessions that were active on a day: stored ones, and fresh ones of this import.
type activeOn struct{ stored, fresh []int32 }

// owner is a session of the log, or one that was removed and that the import leaves out.
type owner struct {
	id       string
	format   string // empty if unknown
	from, to time.Time
	day      int64 // the newest day in byDay
	read     bool  // its events are in places
	fresh    bool  // new in this import: its own ids are in added
	digested bool  // its events are in contents
	removed  bool
}

// late bounds how much the times of the records of a file can be out of order.
const late = 10 * time.Minute

type ownersKey struct{ log *eventlog.Log }

// ownersOf returns the owners that the files of an import share.
func ownersOf(ctx context.Context, log *eventlog.Log) *owners {
	return importrun.Shared(ctx, ownersKey{log}, func(context.Context, ownersKey) *owners {
		return &owners{log: log, byID: map[string]int32{}, byDay: map[int64]*activeOn{}, places: map[shortPlace]bool{}, added: map[uint32]int32{}, others: map[uint32][]int32{}, seed: maphash.MakeSeed(), contents: map[uint64]int32{}, copiesOf: map[string][]string{}}
	})
}

func dayOf(at time.Time) int64 { return at.Unix() / (24 * 60 * 60) }

// shortPlace is the beginning of a place.
type shortPlace [8]byte

func (p place) short() shortPlace { return shortPlace(p[:]) }

// find finds the session of a format that owns a record, if there is one. Events that are
// marked as inherited have no owner. Without anywhere, find looks at the sessions of this
// import only.
func (x *owners) find(ctx context.Context, format string, k Key, at time.Time, anywhere bool) (c Copy, err error) {
	byContent := k.Digest != ""
	if !byContent && !Drawn(k.Own) {
		return c, nil
	}
	at = stamp(at)
	x.mu.Lock()
	defer x.mu.Unlock()
	if anywhere {
		if err := x.list(ctx); err != nil {
			return c, err
		}
	}
	copies := len(x.copies)
	for n, i := range x.candidates(k, at, byContent) {
		o := x.all[i]
		isThen := n < copies || !at.Before(o.from.Add(-late)) && !at.After(o.to.Add(late))
		if o.format != "" && o.format != format || !isThen {
			continue
		}
		if err := x.load(ctx, i, byContent); err != nil {
			return c, err
		}
		if byContent {
			if owner, ok := x.contents[shortDigest(k.Digest, at)]; ok && owner == i {
				return Copy{Session: o.id, Withheld: o.removed, Removed: o.removed}, nil
			}
			if owner, ok := x.contents[shortID(ownPlace(o.id, k.Own, 0, 0).id(at))]; ok && owner == i && Drawn(k.Own) {
				return Copy{Session: o.id, Withheld: true, Removed: o.removed}, nil
			}
			continue
		}
		at := ownPlace(o.id, k.Own, 0, 0).short()
		if erased, ok := x.places[at]; ok {
			return Copy{Session: o.id, Withheld: o.removed || erased, Removed: o.removed}, nil
		}
	}
	return c, nil
}

// candidates are the sessions that can own a record. The first ones are copies.
func (x *owners) candidates(k Key, at time.Time, byContent bool) []int32 {
	day := x.byDay[dayOf(at)]
	if day == nil {
		day = &activeOn{}
	}
	fresh := day.fresh
	if !byContent {
		fresh = x.withOwn(k.Own)
	}
	return slices.Concat(x.copies, day.stored, fresh)
}

// withOwn are the new sessions that may have a record with an own id.
func (x *owners) withOwn(own string) []int32 {
	short := x.short(own)
	if i, ok := x.added[short]; ok {
		return append([]int32{i}, x.others[short]...)
	}
	return nil
}

func (x *owners) short(own string) uint32 { return uint32(maphash.String(x.seed, own)) }

// list lists the sessions of the log, unless it has.
func (x *owners) list(ctx context.Context) error {
	if x.listed {
		return nil
	}
	for info, err := range x.log.Sessions(ctx) {
		if err != nil {
			return fmt.Errorf("find copied records: %w", err)
		}
		if info.Err != nil {
			continue // an import of this session reports it
		}
		format := ""
		if start, err := event.DecodeKept[event.Session](&info.First); info.First.Type.Name() == event.SessionStarted && err == nil {
			format = start.Source.Format
		}
		if format == "" && info.First.Type.Name() != event.SessionForked {
			continue // it was not imported
		}
		i := x.session(info.ID)
		x.all[i].format = format
		from := copiedFrom(&info.First)
		if _, _, copied := info.First.CopyOrigin(); copied || from != nil {
			x.copies = append(x.copies, i)
		}
		x.noteCopies(info.ID, from)
		x.active(i, info.First.Timestamp.Add(-late), info.Last.Timestamp.Add(late))
	}
	x.listed = true
	return nil
}

// session returns the index of a session in all.
func (x *owners) session(id string) int32 {
	i, ok := x.byID[id]
	if !ok {
		i = int32(len(x.all))
		x.all = append(x.all, &owner{id: id})
		x.byID[id] = i
	}
	return i
}

// active notes that a session was active from a time to another.
func (x *owners) active(i int32, from, to time.Time) {
	o := x.all[i]
	if o.from.IsZero() || from.Before(o.from) {
		o.from = from
	}
	if o.to.IsZero() || to.After(o.to) {
		o.to = to
	}
	for day := dayOf(from); day <= dayOf(to); day++ {
		if day != o.day {
			x.noteDay(day, i)
		}
		o.day = day
	}
}

// noteDay notes that a session was active on a day.
func (x *owners) noteDay(day int64, i int32) {
	on := x.byDay[day]
	if on == nil {
		on = &activeOn{}
		x.byDay[day] = on
	}
	all := &on.stored
	if x.all[i].fresh {
		all = &on.fresh
	}
	if !slices.Contains(*all, i) {
		*all = append(*all, i)
	}
}

// load reads the events of a session of the log, unless it has. The events of a damaged
// session are those before the damage.
func (x *owners) load(ctx context.Context, i int32, byContent bool) error {
	o := x.all[i]
	if o.read && (o.digested || !byContent) {
		return nil
	}
	o.read, o.digested = true, byContent
	for e, err := range x.log.Read(ctx, o.id, eventlog.All().Own().Bare().Transient()) {
		if errors.Is(err, eventlog.ErrCorrupt) || errors.Is(err, eventlog.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find copied records in session %q: %w", o.id, err)
		}
		x.add(i, &e)
	}
	return nil
}

// shortID is the beginning of the random part of an id, changed by its time.
func shortID(id ulid.ULID) uint64 { return binary.BigEndian.Uint64(id[6:]) ^ id.Time()<<16 }

// shortDigest is the beginning of a digest of a record's digest, changed by its time.
func shortDigest(d event.Digest, at time.Time) uint64 {
	sum := sha256.Sum256([]byte(d))
	return binary.BigEndian.Uint64(sum[:]) ^ uint64(at.UnixMilli())
}

func (x *owners) add(i int32, e *event.Event) {
	if e.Inherited() {
		return
	}
	if x.all[i].digested {
		if e.Redacted() {
			x.contents[shortID(e.ID)] = i
		} else if d := records.DigestOf(e); d != "" {
			x.contents[shortDigest(d, e.Timestamp)] = i
		}
	}
	x.places[placeOf(e.ID).short()] = e.Redacted()
}

// open notes a session that an import opens. from and to are the times of its first and its
// last event.
func (x *owners) open(s *Session, from, to time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := x.session(s.ID)
	o := x.all[i]
	o.format, o.removed, o.read, o.fresh = s.Format, s.removed, o.read || s.isNew, o.fresh || s.isNew
	if !s.isNew {
		x.active(i, from.Add(-late), to.Add(late))
	}
}

// note adds an event that an import adds to a session, or leaves out because the session was
// removed.
func (x *owners) note(s *Session, k *Key, e *event.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := x.session(s.ID)
	if x.all[i].fresh && k.Part == 0 && Drawn(k.Own) {
		x.noteOwn(i, k.Own)
	}
	x.all[i].format, x.all[i].digested = s.Program, s.ByContent
	x.active(i, e.Timestamp, e.Timestamp)
	x.add(i, e)
}

// noteOwn notes the own id of a record of a new session.
func (x *owners) noteOwn(i int32, own string) {
	short := x.short(own)
	switch first, ok := x.added[short]; {
	case !ok:
		x.added[short] = i
	case first != i && !slices.Contains(x.others[short], i):
		x.others[short] = append(x.others[short], i)
	}
}

// noteCopies notes the sessions that the beginning of a session is copied from.
func (x *owners) noteCopies(session string, originals []string) {
	for _, original := range originals {
		if !slices.Contains(x.copiesOf[original], session) {
			x.copiesOf[original] = append(x.copiesOf[original], session)
		}
	}
}

// forget removes an event that an import has not appended.
func (x *owners) forget(e *event.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.places, placeOf(e.ID).short())
	if d := records.DigestOf(e); d != "" {
		delete(x.contents, shortDigest(d, e.Timestamp))
	}
}
