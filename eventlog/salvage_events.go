package eventlog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// events yields the events that the session has when it is repaired, as those
// of session as: what was found, and a lost event for each seq that was not.
// From the first that is not what it was, they are chained anew; everything
// before stays byte for byte. Two readings give the same lines. fork, if set,
// takes the place of what the session's session_forked says of its parent.
func (s *salvage) events(ctx context.Context, as string, fork *Fork) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		c := collector{salvage: s, ctx: ctx}
		defer c.close()
		r := resealer{salvage: s, as: as, fork: fork}
		if err := r.begin(&c); err != nil {
			yield(Event{}, err)
			return
		}
		chosen, lost := s.chosen, s.lost
		for seq := s.start; seq <= s.last; seq++ {
			var e Event
			var err error
			if len(lost) > 0 && lost[0].From <= seq {
				if e, err = r.lost(seq, &lost[0]); seq == lost[0].To {
					lost = lost[1:]
				}
			} else {
				e, err = r.kept(&c, &chosen[0])
				chosen = chosen[1:]
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// resealer chains events anew where they changed.
type resealer struct {
	*salvage
	as   string
	fork *Fork
	prev Hash      // of the event before
	near time.Time // the time of the event before
}

// begin finds what the first event follows, and a time for events that were
// lost before any other.
func (r *resealer) begin(c *collector) error {
	if fork := r.fork; fork != nil {
		r.prev = fork.Hash
	} else if r.salvage.fork != nil {
		r.prev = r.salvage.fork.Hash
	}
	first, err := c.at(&r.chosen[0])
	if err == nil {
		r.near = first.Timestamp
		c.hold(r.chosen[0].place, first)
	}
	return err
}

// kept is an event that was found.
func (r *resealer) kept(c *collector, line *found) (Event, error) {
	e, err := c.at(line)
	if err != nil {
		return Event{}, err
	}
	if e.Seq == r.start && r.fork != nil {
		if err := e.refork(r.fork); err != nil {
			return Event{}, err
		}
	}
	if e.SessionID != r.as || e.more != line.more || !e.chainsFrom(r.prev) {
		if e, err = e.resealed(r.as, r.prev, line.more); err != nil {
			return Event{}, err
		}
	}
	r.prev, r.near = e.Hash(), e.Timestamp
	return e, nil
}

// refork makes a session_forked name its parent's event as it is now. Its line
// is still to be sealed.
func (e *Event) refork(f *Fork) error {
	members, err := splitMembers(e.Data)
	if err != nil {
		return err
	}
	for i := range members {
		switch members[i].name {
		case "hash":
			members[i].value = jsontext.Value(`"` + f.Hash.String() + `"`)
		case "event_id":
			members[i].value = jsontext.Value(`"` + f.EventID.String() + `"`)
		}
	}
	e.Data = joinMembers(members)
	return nil
}

// resealed is e as an event of session as, chained to prev.
func (e *Event) resealed(as string, prev Hash, more int32) (Event, error) {
	fresh := *e
	fresh.own().verbatim = nil
	fresh.SessionID, fresh.more = as, more
	if e.Redacted() {
		header, commit := fresh.appendHeader(nil), e.commit()
		return fresh.redactedAs(header, chain(prev, header, commit), commit, e.Kept())
	}
	var salt [16]byte
	decodeHex(salt[:], e.salt())
	fresh.seal(nil, prev, salt)
	return fresh, nil
}

// lost is the event that stands for one that was lost. All of it follows from
// the session and the place, so that each repair makes the same.
func (r *resealer) lost(seq int64, where *LostRange) (Event, error) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("lost\x00"+r.session+"\x00"), uint64(seq)))
	e := Event{Seq: seq, SessionID: r.as, Timestamp: r.near}
	loss := Loss{Reason: where.Reason, Source: LossSource{SessionID: r.session, Offset: max(where.Offset, 0), Bytes: where.Bytes}}
	if err := e.encode(loss); err != nil {
		return Event{}, err
	}
	_ = e.ID.SetTime(uint64(max(r.near.UnixMilli(), 0))) // no year of a timestamp is too large
	_ = e.ID.SetEntropy(sum[:10])
	e.seal(nil, r.prev, [16]byte(sum[16:]))
	r.prev = e.Hash()
	return e, nil
}

// collector gives chosen lines in the order of their seqs, from a storage that
// can only be read in the order of places.
type collector struct {
	*salvage
	ctx    context.Context
	pull   func() (Fragment, error, bool)
	stop   func()
	place  int64           // of the fragment that comes next
	held   map[int64]Event // lines that were passed, by place
	weight int             // their bytes
}

// heldBytes bounds what a collector holds. Beyond it the storage is read again.
const heldBytes = 64 << 20

func (c *collector) close() {
	if c.stop != nil {
		c.stop()
	}
}

// at reads a chosen line.
func (c *collector) at(line *found) (Event, error) {
	if e, ok := c.held[line.place]; ok {
		delete(c.held, line.place)
		c.weight -= len(e.Line())
		return e, nil
	}
	if c.stop == nil || line.place < c.place {
		c.restart()
	}
	for {
		f, err, ok := c.pull()
		if !ok || err != nil {
			return Event{}, cmp.Or(err, c.changed())
		}
		c.place++
		if c.place == line.place+1 {
			if f.Err != nil || f.Event.Seq != line.seq || f.Event.Hash() != line.hash {
				return Event{}, c.changed()
			}
			return f.Event, nil
		}
		if c.late[c.place-1] {
			c.hold(c.place-1, f.Event)
		}
	}
}

func (c *collector) restart() {
	c.close()
	salvager, _ := As[Salvager](c.log.store)
	c.pull, c.stop = iter.Pull2(salvager.Fragments(c.ctx, c.session))
	c.place = 0
}

// hold keeps a line that is wanted later.
func (c *collector) hold(place int64, e Event) {
	if c.weight > heldBytes {
		c.held, c.weight = nil, 0
	}
	if c.held == nil {
		c.held = map[int64]Event{}
	}
	c.held[place] = e
	c.weight += len(e.Line())
}

// changed is the error of a storage in which something else stands now.
func (c *collector) changed() error {
	return &ConflictError{Session: c.session}
}
