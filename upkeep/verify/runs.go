package verify

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/line"
)

// runFact has the members of a payload that the rules of turns and runs need.
type runFact struct {
	TurnID      ulid.ULID `json:"turn_id"`
	CursorID    string    `json:"cursor_id"`
	InterruptID string    `json:"interrupt_id"`
	Key         string    `json:"key"`
	Ordinal     string    `json:"ordinal"`
	RetryAt     time.Time `json:"retry_at"`
	Epoch       int64     `json:"epoch"`
}

// readRun sets n.run. A broken payload was reported.
func (n *inspection) readRun(e *event.Event) {
	switch e.Type.Name() {
	case event.TurnStarted, event.TurnCompleted, event.TurnResumed, event.AbortRequested, event.RunClaimed,
		event.EffectIntended, event.EffectCompleted, event.ApprovalRequested, event.ApprovalResolved, event.ApprovalCanceled:
		if f, err := event.DecodeKept[runFact](e); err == nil {
			n.run = &f
		}
	}
}

// ofTurn is 1 if the event names a turn, else 0.
func (f *runFact) ofTurn() int {
	if f.TurnID.IsZero() {
		return 0
	}
	return 1
}

// runs follows the turns, claims, effects and reviews of a session, and notes the events
// that are void (docs/FORMAT.md, chapter 8). Its memory is bounded: it remembers one turn,
// and at most maxMarks names of each kind. It notes nothing about names that it may
// have forgotten.
type runs struct {
	// turn is the turn that began last on the path; zero if the path left it, or if it
	// began before the fork point. end is the seq of its end; 0 if the turn is open.
	turn       ulid.ULID
	start, end int64

	epoch   int64      // of the newest claim that counts
	effects [2]marks   // without a turn, and of the turn: whether they have a result
	reviews [2]marks   // without a turn, and of the turn: whether they were answered
	cursors marks      // consumed cursors of the turn
	counts  ruleCounts // notes, by rule
}

// ruleCounts counts the notes of a rule.
type ruleCounts map[string]int64

// maxMarks is how many names of a kind are remembered. maxRunNotes is how many notes of
// one rule a report lists.
const maxMarks, maxRunNotes = 1 << 14, 20

// marks remembers names, each with a mark, by their hashes.
type marks struct {
	known map[uint64]bool
	full  bool // names were forgotten
}

var marksSeed = maphash.MakeSeed()

func (m *marks) find(name string) (mark, known bool) {
	mark, known = m.known[maphash.String(marksSeed, name)]
	return mark, known
}

func (m *marks) set(name string, mark bool) {
	if m.known == nil {
		m.known = map[uint64]bool{}
	}
	h := maphash.String(marksSeed, name)
	if _, known := m.known[h]; !known && len(m.known) >= maxMarks {
		m.full = true
		return
	}
	m.known[h] = mark
}

// inherit begins after the events of the parent of a fork.
func (r *runs) inherit() {
	r.effects[0].full = true
}

// event folds an event, and notes it if it is void.
func (r *runs) event(c *checker, e *event.Event, n *inspection) {
	if n.facts.Moves {
		r.move(n.facts.To)
	}
	f := n.run
	if f == nil {
		return
	}
	switch e.Type.Name() {
	case event.TurnStarted:
		r.startTurn(c, e)
	case event.TurnCompleted:
		r.endTurn(e, f)
	case event.EffectIntended, event.EffectCompleted:
		r.effect(c, e, f)
	case event.TurnResumed:
		r.resume(c, e, f)
	}
	if e.Copied() {
		return // the rest of a copy is void, without a note
	}
	switch e.Type.Name() {
	case event.AbortRequested:
		r.endTurn(e, f)
	case event.RunClaimed:
		r.claim(c, e, f)
	case event.ApprovalRequested:
		r.reviews[f.ofTurn()].set(f.InterruptID, false)
	case event.ApprovalResolved, event.ApprovalCanceled:
		r.answer(c, e, f)
	}
}

// move follows a head_moved. If it leaves the turn, which turn is open is unknown.
func (r *runs) move(to int64) {
	switch {
	case to < r.start:
		r.turn, r.reviews[1].full = ulid.ULID{}, true
	case to < r.end:
		r.end = 0
	}
}

func (r *runs) startTurn(c *checker, e *event.Event) {
	if !r.turn.IsZero() && r.end == 0 {
		r.note(c, e, ruleTurn, fmt.Sprintf("it begins in turn %s (event %d), which is open: that turn counts as interrupted", r.turn, r.start))
	}
	r.turn, r.start, r.end = e.ID, e.Seq, 0
	r.effects[1], r.reviews[1], r.cursors = marks{}, marks{}, marks{}
}

func (r *runs) endTurn(e *event.Event, f *runFact) {
	if r.end == 0 && (f.TurnID.IsZero() || f.TurnID == r.turn) {
		r.end = e.Seq
	}
}

func (r *runs) effect(c *checker, e *event.Event, f *runFact) {
	if f.ofTurn() == 1 && f.TurnID != r.turn {
		return
	}
	seen, name := &r.effects[f.ofTurn()], "key "+f.Key
	if f.ofTurn() == 1 && f.Ordinal != "" {
		name = f.Ordinal
	}
	done, known := seen.find(name)
	intent := e.Type.Name() == event.EffectIntended
	if intent && f.ofTurn() == 0 {
		done = false // another effect
	}
	what := fmt.Sprintf("effect %q", line.Clip(cmp.Or(f.Ordinal, f.Key)))
	switch {
	case intent && done:
		r.note(c, e, ruleEffect, what+" has a result: the intent does not count")
	case !intent && done && !f.RetryAt.IsZero():
		done = false // it takes the result back
	case !intent && done:
		r.note(c, e, ruleEffect, what+" has a result: the second one does not count")
	case !intent && !known && !seen.full:
		r.note(c, e, ruleEffect, what+" has no intent")
	}
	if !done {
		seen.set(name, !intent && f.RetryAt.IsZero())
	}
}

func (r *runs) resume(c *checker, e *event.Event, f *runFact) {
	if _, known := r.cursors.find(f.CursorID); known {
		r.note(c, e, ruleCursor, fmt.Sprintf("cursor %q was consumed before", line.Clip(f.CursorID)))
	}
	r.cursors.set(f.CursorID, true)
}

func (r *runs) claim(c *checker, e *event.Event, f *runFact) {
	if f.Epoch != r.epoch+1 {
		r.note(c, e, ruleClaim, fmt.Sprintf("its epoch is %d, and the next one is %d: it does not count", f.Epoch, r.epoch+1))
		return
	}
	r.epoch = f.Epoch
}

func (r *runs) answer(c *checker, e *event.Event, f *runFact) {
	for i := range r.reviews {
		switch answered, known := r.reviews[i].find(f.InterruptID); {
		case answered:
			r.note(c, e, ruleReview, fmt.Sprintf("review %q was answered before: this answer does not count", line.Clip(f.InterruptID)))
			return
		case known:
			r.reviews[i].set(f.InterruptID, true)
			return
		}
	}
	if !r.reviews[0].full && !r.reviews[1].full {
		r.note(c, e, ruleReview, fmt.Sprintf("no review %q is open: the answer does not count", line.Clip(f.InterruptID)))
	}
}

// note notes a void event, unless events are missing or it is a copy. It lists the first
// notes of a rule and counts the others.
func (r *runs) note(c *checker, e *event.Event, rule, detail string) {
	if c.damaged || len(c.lost) > 0 || e.Copied() {
		return
	}
	if r.counts == nil {
		r.counts = ruleCounts{}
	}
	if r.counts[rule]++; r.counts[rule] <= maxRunNotes {
		c.note(e.Seq, rule, detail)
	}
}

// finish notes how many notes are not listed.
func (r *runs) finish(c *checker) {
	for _, rule := range []string{ruleTurn, ruleEffect, ruleCursor, ruleClaim, ruleReview} {
		if more := r.counts[rule] - maxRunNotes; more > 0 {
			c.note(0, rule, fmt.Sprintf("%d more events like the %d above", more, maxRunNotes))
		}
	}
}
