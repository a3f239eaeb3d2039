package flow

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// shape describes the effect or wait that the log has at an ordinal: the newest intent, or
// else the review, the wait or the cursor that came before an intent.
type shape struct {
	seq        int64
	kind, name string // empty if the log does not tell
	nonce      string
	digest     event.Digest   // of the arguments
	arguments  jsontext.Value // of an intent, or of an Await without digest
	wait       string         // the id of a wait
	point      point          // of a wait
	inherited  bool           // from another session
}

// shapeAt is the shape at an ordinal; false if the log has none.
func (r *records) shapeAt(ordinal string) (shape, bool) {
	x := r.at[ordinal]
	if x == nil || x.intent == nil {
		s, ok := r.shapes[ordinal]
		return s, ok
	}
	i := x.intent
	return shape{seq: x.intended, kind: i.Kind, name: i.Name, nonce: i.Nonce, digest: i.ArgumentsDigest, arguments: i.Arguments}, true
}

// shapeOf is the shape of step n of the turn. single reports that the step is no batch.
func (r *records) shapeOf(n int) (s shape, single bool) {
	if s, ok := r.shapeAt(strconv.Itoa(n)); ok {
		return s, true
	}
	if t := r.tops[n]; t != nil {
		for i := range t.places {
			if s, ok := r.shapeAt(strconv.Itoa(n) + "." + strconv.Itoa(i)); ok {
				return s, false
			}
		}
	}
	return s, false
}

// compareStep compares the kind of the next step, and the number of its effects, with the
// log. The caller holds r.mu.
func (t *turn) compareStep(kind string, many bool, count int) error {
	n := t.next
	s, single := t.rec.shapeOf(n)
	ordinal := strconv.Itoa(n)
	switch {
	case s.kind == "":
		return nil
	case s.kind != kind && (noEffect(s.kind) || noEffect(kind)):
		return t.refuse(s.seq, ordinal, "kind", s.kind, kind)
	case s.kind != kind:
		return t.diverge(s.seq, ordinal, "kind", s.kind, kind)
	}
	size := t.rec.tops[n].size
	switch {
	case single && many:
		return t.diverge(s.seq, ordinal, "batch", "1", strconv.Itoa(count))
	case single:
		return nil
	case !many:
		return t.diverge(t.rec.reached(n), ordinal, "batch", strconv.Itoa(max(size, t.rec.tops[n].places)), "0")
	case size > 0 && size != count, count < t.rec.tops[n].places:
		return t.diverge(t.rec.reached(n), ordinal, "batch", strconv.Itoa(max(size, t.rec.tops[n].places)), strconv.Itoa(count))
	}
	return nil
}

// noEffect reports whether a kind has a record that no effect can use.
func noEffect(kind string) bool { return kind == kindNewWait || kind == kindWait || kind == kindPatch }

// compare returns a *DivergenceError if the effect is not the one in the log.
func (t *turn) compare(x *effect) error {
	s, ok := t.rec.shapeAt(x.ordinal)
	switch {
	case !ok:
		return nil
	case s.name != "" && s.name != x.name:
		return t.diverge(s.seq, x.ordinal, "name", s.name, x.name)
	case x.rec != nil && x.rec.intent != nil && intendedWith(x.rec.intent, x.arguments):
		return nil
	case s.digest != "" && !sameArguments(s.nonce, s.digest, x.arguments),
		s.digest == "" && s.arguments != nil && !bytes.Equal(s.arguments, x.arguments):
		return t.diverge(s.seq, x.ordinal, "arguments", string(s.arguments), string(x.arguments))
	}
	return nil
}

// compareUnasked returns an error if the log has a review of the effect without an answer,
// and the code asks for none. The caller holds r.mu.
func (t *turn) compareUnasked(x *effect) error {
	if x.rec == nil || x.rec.inherited || x.rec.review == nil || x.rec.intent != nil {
		return nil
	}
	if v := x.rec.review; v.answer == nil && !v.erased {
		return t.refuse(v.seq, x.ordinal, "review", v.request.Prompt, "")
	}
	return nil
}

// undecodable ends the execution because a recorded result does not decode into the type
// that the code has now.
func (t *turn) undecodable(s *settled, into any, err error) error {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	return t.refuse(s.point.seq, s.done.Ordinal, "result", string(s.done.Result), fmt.Sprintf("%T: %v", into, err))
}

// intendedWith reports whether an intent has the arguments themselves: a person approved
// no others.
func intendedWith(i *event.EffectIntent, arguments jsontext.Value) bool {
	return i.InterruptID == "" && len(arguments) > 0 && bytes.Equal(i.Arguments, arguments)
}

func sameArguments(nonce string, digest event.Digest, arguments jsontext.Value) bool {
	got, err := event.ArgumentsDigest(nonce, orNull(arguments))
	return err == nil && got == digest
}

func orNull(v jsontext.Value) jsontext.Value {
	if len(v) == 0 {
		return null
	}
	return v
}

// refuse ends the execution because the code cannot use a record. Options.Resume is not
// asked.
func (t *turn) refuse(seq int64, ordinal, member, recorded, got string) error {
	return t.stopLocked(t.rec.difference(seq, ordinal, member, recorded, got))
}

// diverge asks Options.Resume about a difference. Without it, the difference ends the
// execution.
func (t *turn) diverge(seq int64, ordinal, member, recorded, got string) error {
	d := t.rec.difference(seq, ordinal, member, recorded, got)
	f := t.r.options.Resume
	if f == nil {
		return t.stopLocked(d)
	}
	if err := f(d); err != nil {
		return t.stopLocked(err)
	}
	return nil
}
