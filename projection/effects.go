package projection

import (
	"cmp"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// OpenEffect is an effect without a result. Its outcome is unknown, unless RetryAt is
// set.
type OpenEffect struct {
	// Seq is the seq of the newest intent.
	Seq             int64             `json:"seq"`
	Key             string            `json:"key"`
	TurnID          ulid.ULID         `json:"turn_id,omitzero"`
	Ordinal         string            `json:"ordinal,omitzero"`
	Kind            string            `json:"kind,omitzero"`
	Name            string            `json:"name,omitzero"`
	Class           event.EffectClass `json:"class,omitzero"`
	Attempt         int               `json:"attempt,omitzero"` // from 1
	Nonce           string            `json:"nonce,omitzero"`
	ArgumentsDigest event.Digest      `json:"arguments_digest,omitzero"`
	// RetryAt, if set, says that the attempt ended without a result. The next attempt
	// is due then.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Inherited reports that the effect was open at the fork point, or was copied: do
	// not run it again in this session.
	Inherited bool `json:"inherited,omitzero"`
}

// DoneEffect is an effect with a result. The result itself is in the log.
type DoneEffect struct {
	Key     string    `json:"key"`
	TurnID  ulid.ULID `json:"turn_id"`
	Ordinal string    `json:"ordinal,omitzero"`
	// Intended and Completed are the seqs of the intent and the result.
	Intended  int64 `json:"intended,omitzero"`
	Completed int64 `json:"completed"`
	Attempt   int   `json:"attempt,omitzero"` // from 1
}

func (o *OpenEffect) lookupKey() (lookupKey, int64) {
	return effectPlace(o.Key, o.TurnID, o.Ordinal), o.Seq
}

func (d *DoneEffect) lookupKey() (lookupKey, int64) {
	return effectPlace(d.Key, d.TurnID, d.Ordinal), d.Completed
}

func (o *OpenEffect) turn() ulid.ULID { return o.TurnID }
func (d *DoneEffect) turn() ulid.ULID { return d.TurnID }

// effectPlace identifies an effect in a lineage: by its turn and ordinal, or by its key
// if it lacks one of them. In a fork, an effect has another key and the same place.
func effectPlace(key string, turn ulid.ULID, ordinal string) lookupKey {
	if turn.IsZero() || ordinal == "" {
		return lookupKey{id: key}
	}
	return lookupKey{turn: turn, ordinal: ordinal}
}

// intend folds an effect_intended. The intent of a completed effect is void.
func (s *ControlState) intend(e *event.Event) error {
	p, err := event.DecodeKept[event.EffectIntent](e)
	if err != nil {
		return err
	}
	place := effectPlace(p.Key, p.TurnID, p.Ordinal)
	if s.done.has(&s.Done, place) {
		return nil
	}
	s.effects.remove(&s.Effects, place)
	s.effects.add(&s.Effects, OpenEffect{Seq: e.Seq, Key: p.Key, TurnID: p.TurnID, Ordinal: p.Ordinal, Kind: p.Kind, Name: p.Name,
		Class: p.Class.Known(), Attempt: max(p.Attempt, 1), Nonce: p.Nonce, ArgumentsDigest: p.ArgumentsDigest, Inherited: e.Copied()})
	return nil
}

// complete folds an effect_completed. The first one without retry_at is the result. One
// with retry_at ends the open attempt, or takes the result of its attempt back.
func (s *ControlState) complete(e *event.Event) error {
	p, err := event.DecodeKept[event.EffectCompletion](e)
	if err != nil {
		return err
	}
	place := s.placeOf(&p)
	if i := s.done.find(&s.Done, place); i >= 0 {
		if !p.RetryAt.IsZero() && max(p.Attempt, 1) == s.Done[i].Attempt {
			s.done.remove(&s.Done, place)
		}
		return nil
	}
	if !p.RetryAt.IsZero() {
		s.endAttempt(place, &p)
		return nil
	}
	open := s.effects.remove(&s.Effects, place)
	d := DoneEffect{Key: p.Key, TurnID: p.TurnID, Ordinal: p.Ordinal, Intended: open.Seq, Completed: e.Seq, Attempt: cmp.Or(p.Attempt, open.Attempt, 1)}
	if open.Seq > 0 {
		d.TurnID, d.Ordinal = cmp.Or(open.TurnID, p.TurnID), open.Ordinal
	}
	if !d.TurnID.IsZero() {
		s.done.add(&s.Done, d)
	}
	return nil
}

// placeOf is the place of the effect that a completion ends. A completion without turn
// or ordinal names the effect by its key.
func (s *ControlState) placeOf(p *event.EffectCompletion) lookupKey {
	place := effectPlace(p.Key, p.TurnID, p.Ordinal)
	if (p.TurnID.IsZero() || p.Ordinal == "") && !s.effects.has(&s.Effects, place) {
		i := slices.IndexFunc(s.Effects, func(o OpenEffect) bool { return o.Key == p.Key })
		if i >= 0 {
			place, _ = s.Effects[i].lookupKey()
		}
	}
	return place
}

// endAttempt ends the open attempt of an effect. The completion of an earlier attempt is
// void.
func (s *ControlState) endAttempt(place lookupKey, p *event.EffectCompletion) {
	if i := s.effects.find(&s.Effects, place); i >= 0 {
		o := &s.Effects[i]
		if o.RetryAt.IsZero() && max(p.Attempt, 1) == o.Attempt {
			o.RetryAt = p.RetryAt
		}
	}
}
