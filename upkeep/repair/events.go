package repair

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/rawjson"
)

// events yields the events of the repaired session, as events of session as: the
// salvaged events, and a lost event for each missing seq. It chains the events again
// from the first different event on; the lines before it do not change. Two iterations
// give the same lines. fork, if set, replaces the payload of session_forked.
func (s *salvage) events(ctx context.Context, as string, fork *event.Fork) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		c := collector{salvage: s, ctx: ctx}
		defer c.close()
		r := resealer{salvage: s, as: as, fork: fork}
		if err := r.begin(&c); err != nil {
			yield(event.Event{}, err)
			return
		}
		chosen, lost := s.chosen, s.lost
		for seq := s.start; seq <= s.last; seq++ {
			var e event.Event
			var err error
			if len(lost) > 0 && lost[0].From <= seq {
				if e, err = r.lostEvent(seq, &lost[0]); seq == lost[0].To {
					lost = lost[1:]
				}
			} else {
				e, err = r.salvaged(&c, &chosen[0])
				chosen = chosen[1:]
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// resealer chains events again after the first different event.
type resealer struct {
	*salvage
	as   string
	fork *event.Fork
	prev event.Hash // of the event before
	near time.Time  // the time of the event before
}

// begin finds the hash before the first event, and a time for lost events before the
// first salvaged event.
func (r *resealer) begin(c *collector) error {
	if r.fork != nil {
		r.prev = r.fork.Hash
	} else if r.salvage.fork != nil {
		r.prev = r.salvage.fork.Hash
	}
	first, err := c.read(&r.chosen[0])
	if err == nil {
		r.near = first.Timestamp
		c.unread(&r.chosen[0], first)
	}
	return err
}

// salvaged returns the event of a readable line.
func (r *resealer) salvaged(c *collector, f *foundLine) (event.Event, error) {
	e, err := c.read(f)
	if err != nil {
		return event.Event{}, err
	}
	var l line.Line
	if err := l.Parse(e.Line(), line.Strings{Session: r.session}); err != nil {
		return event.Event{}, err
	}
	reforked := e.Seq == r.start && r.fork != nil
	if reforked {
		content := &l.Data
		if l.Redacted {
			content = &l.Kept
		}
		if *content, err = refork(*content, r.fork); err != nil {
			return event.Event{}, err
		}
	}
	if reforked || e.SessionID != r.as || l.More != f.more || !l.Follows(line.Hash(r.prev)) {
		l.Session, l.More = r.as, f.more
		if e, err = event.Parse(l.Reseal(line.Hash(r.prev)), r.as); err != nil {
			return event.Event{}, err
		}
	}
	r.prev, r.near = e.Hash(), e.Timestamp
	return e, nil
}

// refork writes the present event of the parent into the data of a session_forked.
func refork(data jsontext.Value, f *event.Fork) (jsontext.Value, error) {
	members, err := rawjson.Members(data)
	if err != nil {
		return nil, err
	}
	for i := range members {
		switch members[i].Name {
		case "hash":
			members[i].Value = jsontext.Value(`"` + f.Hash.String() + `"`)
		case "event_id":
			members[i].Value = jsontext.Value(`"` + f.EventID.String() + `"`)
		}
	}
	return rawjson.Object(members), nil
}

// lostEvent makes the lost event for a missing seq. It depends on the session and the
// seq only, so that each repair makes the same line.
func (r *resealer) lostEvent(seq int64, where *Range) (event.Event, error) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("lost\x00"+r.session+"\x00"), uint64(seq)))
	loss := event.Loss{Reason: where.Reason}
	loss.Source.SessionID, loss.Source.Offset, loss.Source.Bytes = r.session, max(where.Offset, 0), where.Bytes
	l := line.Line{Seq: seq, Session: r.as, Type: string(event.Lost), Timestamp: r.near, Data: event.New(loss).Data}
	_ = l.ID.SetTime(uint64(max(r.near.UnixMilli(), 0))) // no year of a timestamp is too large
	_ = l.ID.SetEntropy(sum[:10])
	e, err := event.Parse(l.Append(nil, line.Hash(r.prev), [16]byte(sum[16:])), r.as)
	if err != nil {
		return e, fmt.Errorf("make a lost event: %w", err)
	}
	r.prev = e.Hash()
	return e, nil
}
