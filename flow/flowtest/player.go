package flowtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/internal/playback"
	"github.com/convlog/convlog/projection"
)

// player gives the turns of the agent the outcomes of a tape. It is the source of the
// session's player, too.
type player struct {
	ctx     context.Context // of the test
	tape    *tape
	options Options
	prompts *prompts
	render  projection.RenderOptions // of the agent

	mu    sync.Mutex
	turns []*recordedTurn // that did not begin
	turn  *recordedTurn
	begun int // turns
	now   time.Time
	// unchecked counts the requests whose prompts are not known.
	unchecked int
}

// Session is the player of a session.
func (p *player) Session(id string) playback.Player {
	if id != p.tape.session {
		return nil
	}
	return p
}

// clock is the time of the newest event that the run has reached.
func (p *player) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// reach moves the clock. The caller holds p.mu.
func (p *player) reach(t time.Time) {
	if t.After(p.now) {
		p.now = t
	}
}

// Begin begins the next recorded turn.
func (p *player) Begin(input string) (playback.Beginning, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.turns) == 0 || p.turns[0].input.ID != input {
		return playback.Beginning{}, fmt.Errorf("%w: a turn of the input %q", ErrNotServed, input)
	}
	p.turn, p.turns = p.turns[0], p.turns[1:]
	p.begun++
	p.reach(p.turn.time)
	return playback.Beginning{Mark: playback.Mark{ID: p.turn.id, Time: p.turn.time}, Snapshot: p.turn.start.SnapshotID}, nil
}

// Steer returns the inputs that steered the recorded turn before a step.
func (p *player) Steer(n int) []playback.Input {
	if s := p.turn.steps[n]; s != nil {
		return s.steers
	}
	return nil
}

// Effects compares the effects of a step with the tape, and returns their outcomes.
func (p *player) Effects(b *playback.Batch) (*playback.Outcomes, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.turn.steps[b.Step]
	if s == nil {
		return p.after(b)
	}
	if slices.ContainsFunc(s.effects, func(x *effect) bool { return x == nil || (x.intent == nil) != (s.effects[0].intent == nil) }) {
		return nil, fmt.Errorf("%w: only a part of the batch of event %d began", ErrNotServed, s.first)
	}
	if d := p.compare(s, b); d != nil {
		return nil, d
	}
	for i, x := range s.effects {
		if err := x.served(); err != nil {
			return nil, err
		}
		if err := p.request(&b.Calls[i], x); err != nil {
			return nil, err
		}
	}
	if p.expired(s) {
		return nil, playback.ErrExpired
	}
	return p.outcomes(b.Step, s)
}

// served returns an error if the result of the effect was erased.
func (x *effect) served() error {
	if x.done == nil {
		return nil
	}
	for _, e := range append(slices.Clone(x.outcome), *x.done) {
		if e.Redacted() {
			return fmt.Errorf("%w: event %d was redacted", ErrNotServed, e.Seq)
		}
	}
	return nil
}

// after is the outcome of effects after the last recorded step.
func (p *player) after(b *playback.Batch) (*playback.Outcomes, error) {
	t := p.turn
	switch {
	case b.Step < t.count:
		return nil, fmt.Errorf("%w: the recording has no effect %d of turn %d", ErrNotServed, b.Step, t.start.Index)
	case t.abort != nil:
		return &playback.Outcomes{Items: []playback.Item{{Abort: t.abort}}}, nil
	case t.end == nil:
		return nil, playback.ErrEnded
	case t.end.Status == event.TurnStatusCompleted && t.end.StopReason == "limit":
		return nil, playback.ErrLimit
	}
	d := p.divergence(b.Calls[0].Ordinal, nil)
	d.Member, d.Kind, d.Name = "effect", b.Calls[0].Kind, b.Calls[0].Name
	d.Seq, d.Type = t.endSeq, event.TurnCompleted
	d.Recorded, d.Got = t.ending(), "another effect: "+describe(&b.Calls[0])
	return nil, d
}

// expired reports whether the turn got an error because a review expired.
func (p *player) expired(s *step) bool {
	return p.turn.end != nil && p.turn.abort == nil && slices.ContainsFunc(s.effects, func(x *effect) bool {
		return x.intent == nil && x.review != nil && x.answer == nil && !x.canceled && x.review.Lapse == event.LapseFail
	})
}

// outcomes are the outcomes of a step, with the abort that came before the next one.
func (p *player) outcomes(n int, s *step) (*playback.Outcomes, error) {
	o := &playback.Outcomes{}
	type placed struct {
		seq int64
		playback.Item
	}
	var items []placed
	for i, x := range s.effects {
		if x.intent != nil {
			o.Intents = append(o.Intents, playback.Intent{Mark: playback.Mark{ID: x.intentID, Time: x.intentTime}, Key: x.intent.Key, Nonce: x.intent.Nonce, Answer: x.allowed()})
		}
		if x.done != nil {
			p.reach(x.done.Timestamp)
			items = append(items, placed{x.done.Seq, playback.Item{Call: i, Events: append(copies(x.children), copies(x.outcome)...), End: copyOf(x.done)}})
		}
	}
	if t := p.turn; t.abort != nil && (t.steps[n+1] == nil || t.aborted < t.steps[n+1].first) {
		items = append(items, placed{t.aborted, playback.Item{Abort: t.abort}})
	}
	slices.SortStableFunc(items, func(a, b placed) int { return cmp.Compare(a.seq, b.seq) })
	for _, x := range items {
		o.Items = append(o.Items, x.Item)
	}
	return o, nil
}

// allowed is the answer that the intent names.
func (x *effect) allowed() *event.ApprovalResolution {
	switch id := x.intent.InterruptID; {
	case id == "":
		return nil
	case x.answer != nil && x.answer.InterruptID == id:
		return x.answer
	default:
		return &event.ApprovalResolution{InterruptID: id, Decision: event.Denied}
	}
}

// copies are events for another log, with their ids and times.
func copies(events []event.Event) []event.Event {
	list := make([]event.Event, len(events))
	for i := range events {
		list[i] = copyOf(&events[i])
	}
	return list
}

func copyOf(e *event.Event) event.Event {
	c := event.Event{ID: e.ID, Type: e.Type, Timestamp: e.Timestamp, Cost: e.Cost, Data: e.Data}
	if err := c.AddBlobs(e.Blobs()...); err != nil {
		return event.Event{Type: e.Type} // it is refused
	}
	return c
}

// Wait compares a new wait with the tape.
func (p *player) Wait(n int, name string) (playback.Wait, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := playback.Call{Ordinal: fmt.Sprint(n), Kind: "new " + kindWait, Name: name}
	s := p.turn.steps[n]
	if s == nil {
		_, err := p.after(&playback.Batch{Step: n, Calls: []playback.Call{call}})
		return playback.Wait{}, err
	}
	if d := p.compare(s, &playback.Batch{Step: n, Calls: []playback.Call{call}}); d != nil {
		return playback.Wait{}, d
	}
	w, err := event.DecodeKept[event.Wait](s.wait)
	p.reach(s.wait.Timestamp)
	return playback.Wait{Mark: playback.Mark{ID: s.wait.ID, Time: s.wait.Timestamp}, ID: w.WaitID, Until: w.Until}, err
}

// Patched reports whether the recorded code had a change. Code that was recorded before the
// change passed this place without it.
func (p *player) Patched(n int, name string) bool {
	s := p.turn.steps[n]
	return s != nil && s.patch == name
}

// End compares the end of the turn function with the tape.
func (p *player) End(n int, failed error, aborted bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.turn
	if t.end != nil {
		p.reach(t.time.Add(time.Duration(t.end.DurationMS) * time.Millisecond))
	}
	switch {
	case aborted:
		return nil
	case n < t.count:
		return p.early(n, failed)
	case t.end == nil:
		return playback.ErrEnded
	case (t.end.Status == event.TurnStatusFailed) == (failed != nil && !errors.Is(failed, flow.ErrLimit)):
		return nil
	}
	d := p.divergence("", nil)
	d.Member, d.Seq, d.Type, d.Recorded, d.Got = "end", t.endSeq, event.TurnCompleted, t.ending(), returns(failed)
	return d
}

// early is the divergence of a turn that ends before its last recorded step.
func (p *player) early(n int, failed error) error {
	s := p.turn.steps[n]
	if s == nil {
		return fmt.Errorf("%w: the recording has no effect %d of turn %d", ErrNotServed, n, p.turn.start.Index)
	}
	d := p.divergence(fmt.Sprint(n), nil)
	d.Member, d.Got = "end", returns(failed)
	d.Seq, d.Type, d.Kind, d.Name = s.first, s.recordType(), s.kind(), s.name()
	d.Recorded = s.describe()
	if len(s.effects) > 0 {
		d.Ordinal = s.effects[0].ordinal
	}
	return d
}

// returns describes the end of a turn function.
func returns(failed error) string {
	if failed == nil {
		return "the end of the turn"
	}
	return "the turn function returns the error: " + failed.Error()
}

// ending describes the recorded end of a turn.
func (t *recordedTurn) ending() string {
	text := "the end of the turn, " + string(t.end.Status)
	if t.end.Error != "" {
		text += ": " + t.end.Error
	}
	return text
}

// describe describes an effect of the code.
func describe(c *playback.Call) string {
	text := fmt.Sprintf("%s %q", c.Kind, c.Name)
	if len(c.Arguments) > 0 && string(c.Arguments) != "null" {
		text += " " + shorten(string(c.Arguments))
	}
	return text
}

func (s *step) recordType() event.Type {
	switch {
	case s.wait != nil:
		return event.WaitStarted
	case s.patch != "":
		return event.EffectIntended
	}
	return s.effects[0].recordType()
}

func (s *step) kind() string {
	switch {
	case s.wait != nil:
		return "new " + kindWait
	case s.patch != "":
		return kindPatch
	}
	return s.effects[0].kind()
}

func (s *step) name() string {
	switch {
	case s.wait != nil:
		w, _ := event.DecodeKept[event.Wait](s.wait) // the tape has decoded it
		return w.Reason
	case s.patch != "":
		return s.patch
	}
	return s.effects[0].name()
}

// describe describes the first record of a step.
func (s *step) describe() string {
	c := playback.Call{Kind: s.kind(), Name: s.name()}
	if len(s.effects) > 0 {
		c.Arguments = s.effects[0].arguments()
	}
	return describe(&c)
}

// arguments are the arguments that the code asked with.
func (x *effect) arguments() jsontext.Value {
	if x.review != nil {
		return x.review.Arguments
	}
	return x.intent.Arguments
}
