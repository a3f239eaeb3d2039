package projection

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// recentAnswers is the number of answers in a Meter. A later piece of one of them is
// recognized.
const recentAnswers = 64

// Meter converts events to charges. It counts each answer of a model once. It keeps
// the newest 64 answers; a piece of an older answer counts again.
type Meter struct {
	// Agent is the current agent, and Turn the open turn. Spent reports whether the
	// turn used tokens.
	Agent string    `json:"agent,omitzero"`
	Turn  ulid.ULID `json:"turn,omitzero"`
	Spent bool      `json:"spent,omitzero"`
	// Ended is the last turn that ended, if it used tokens. A retry may end it again.
	Ended ulid.ULID `json:"ended,omitzero"`
	// Steps and Effects are the open ones. Answers are the newest, oldest first.
	Steps   []openStep   `json:"steps,omitzero"`
	Effects []openMetric `json:"effects,omitzero"`
	Answers []answer     `json:"answers,omitzero"`
	// Flow reports whether the session has effects: then an assistant message without a
	// model, an id and tokens is of the program, and no answer.
	Flow bool `json:"flow,omitzero"`
	// Children are the ids of the child runs with a session of their own: their usage
	// counts there.
	Children []string `json:"children,omitzero"`

	effects  lookup[openMetric, *openMetric]
	children index[string, string, bool]
}

// Charge is a change of the spend. A correction can be negative.
type Charge struct {
	Spend
	Model string
	Agent string
	Turn  ulid.ULID
	// Response is the answer of a model that the charge belongs to; zero for other costs.
	Response Response
}

// Response is an answer of a model as it was counted so far.
type Response struct {
	// ID names the answer in its session.
	ID string
	// Usage is the usage of the answer, with Extra of the newest event.
	Usage event.Usage
	// Priced reports whether an event of the answer has a cost.
	Priced bool
}

type openStep struct {
	TurnID ulid.ULID `json:"turn_id,omitzero"`
	Step   int       `json:"step"`
	Seq    int64     `json:"seq"`
	Model  string    `json:"model,omitzero"`
}

type openMetric struct {
	Key   string `json:"key"`
	Seq   int64  `json:"seq"`
	Model bool   `json:"model,omitzero"`
}

func (o *openMetric) lookupKey() (lookupKey, int64) { return lookupKey{id: o.Key}, o.Seq }

// Read folds an event and calls emit for each charge. It folds an inherited event
// without a charge.
func (m *Meter) Read(e *event.Event, inherited bool, emit func(Charge)) error {
	r := meterEvent{Meter: m, e: e, inherited: inherited, emit: emit}
	switch e.Type.Name() {
	case event.MessageAdded:
		return r.message()
	case event.StepStarted:
		return r.startStep()
	case event.StepCompleted:
		return r.completeStep()
	case event.EffectIntended:
		r.cost("")
		return m.intendEffect(e)
	case event.EffectCompleted:
		return r.completeEffect()
	case event.TurnStarted, event.TurnCompleted:
		return r.turn()
	case event.SessionStarted, event.SessionUpdated, event.HandoffMade:
		r.cost("")
		return r.agent()
	case event.SessionForked:
		m.Effects, m.effects = nil, lookup[openMetric, *openMetric]{}
	}
	if _, ok := e.Type.ChildState(); ok {
		return r.child()
	}
	r.cost("")
	return nil
}

// inherit marks the answers so far as inherited from another session.
func (m *Meter) inherit() {
	for i := range m.Answers {
		m.Answers[i].Inherited = true
	}
}

// find returns the newest answer for which match is true; nil if there is none.
func (m *Meter) find(match func(a *answer) bool) *answer {
	for i := len(m.Answers) - 1; i >= 0; i-- {
		if match(&m.Answers[i]) {
			return &m.Answers[i]
		}
	}
	return nil
}

func (m *Meter) add(a answer) *answer {
	if n := len(m.Answers) + 1 - recentAnswers; n > 0 {
		m.Answers = slices.Delete(m.Answers, 0, n)
	}
	m.Answers = append(m.Answers, a)
	return &m.Answers[len(m.Answers)-1]
}

// meterEvent is a Meter at one event.
type meterEvent struct {
	*Meter
	e         *event.Event
	inherited bool
	emit      func(Charge)
}

// charge emits a charge of this session.
func (r *meterEvent) charge(c Charge) {
	if !r.inherited && !c.Spend.IsZero() {
		r.emit(c)
	}
}

// cost charges the cost of the event itself.
func (r *meterEvent) cost(model string) {
	r.charge(Charge{Spend: Spend{Cost: r.e.Cost}, Model: model, Agent: r.Agent, Turn: r.Turn})
}

// count charges the event's cost and usage to an answer. A usage that is not zero
// replaces the usage of the answer.
func (r *meterEvent) count(a *answer, usage event.Usage) {
	before := a.charged()
	if !usage.IsZero() {
		a.Usage = event.Usage{}.Add(usage)
		r.Spent = r.Spent || !a.Usage.IsZero()
	}
	a.Priced, a.uncharged = a.Priced || r.e.Cost > 0, false
	change := a.charged().sub(before)
	change.Cost = r.e.Cost
	so := Response{ID: a.ID, Usage: a.Usage, Priced: a.Priced}
	so.Usage.Extra = usage.Extra
	r.charge(Charge{Spend: change, Model: a.Model, Agent: a.Agent, Turn: a.Turn, Response: so})
}

func (s *openStep) id() string { return fmt.Sprintf("step %d", s.Seq) }

func (r *meterEvent) startStep() error {
	p, err := event.DecodeKept[event.StepStart](r.e)
	r.Steps = append(r.Steps, openStep{TurnID: p.TurnID, Step: p.Step, Seq: r.e.Seq, Model: p.Model})
	r.Agent = cmp.Or(p.Agent, r.Agent)
	r.cost(p.Model)
	return err
}

func (r *meterEvent) completeStep() error {
	p, err := event.DecodeKept[event.StepCompletion](r.e)
	if err != nil {
		return err
	}
	step := openStep{Seq: r.e.Seq, Model: p.Model}
	r.Steps = slices.DeleteFunc(r.Steps, func(s openStep) bool {
		same := s.TurnID == p.TurnID && s.Step == p.Step
		if same {
			step = s
		}
		return same
	})
	r.Agent = cmp.Or(p.Agent, r.Agent)
	a := r.find(func(a *answer) bool {
		return p.ResponseID != "" && (a.Response == p.ResponseID || a.ID == "group "+p.ResponseID) && a.Inherited == r.inherited
	})
	if a == nil {
		a = r.find(func(a *answer) bool {
			return a.Seq >= step.Seq && (p.ResponseID == "" || a.Response == "") && a.Inherited == r.inherited
		})
	}
	if a == nil && step.Seq == r.e.Seq && p.ResponseID == "" && !p.Usage.IsZero() {
		a = r.unknown(p.Agent, p.Model)
	}
	if a == nil && p.Usage.IsZero() {
		r.cost(p.Model)
		return nil
	}
	if a == nil {
		a = r.answer(step.id(), cmp.Or(p.Model, step.Model))
		if step.Seq == r.e.Seq && p.ResponseID == "" {
			a.Stepped = r.e.Timestamp
		}
	}
	a.Response = cmp.Or(a.Response, p.ResponseID)
	r.count(a, p.Usage)
	return nil
}

// free folds an effect that costs nothing. It reports false for all other events, and does
// nothing then.
func (m *Meter) free(e *event.Event) (free bool, err error) {
	if e.Cost != 0 {
		return false, nil
	}
	switch e.Type.Name() {
	case event.EffectIntended:
		return true, m.intendEffect(e)
	case event.EffectCompleted:
		p, err := event.DecodeKept[event.EffectCompletion](e)
		if err != nil || !p.Usage.IsZero() {
			return false, nil
		}
		key := lookupKey{id: p.Key}
		if i := m.effects.find(&m.Effects, key); i >= 0 && m.Effects[i].Model {
			return false, nil
		}
		m.effects.remove(&m.Effects, key)
		return true, nil
	}
	return false, nil
}

func (m *Meter) intendEffect(e *event.Event) error {
	m.Flow = true
	p, err := event.DecodeKept[event.EffectIntent](e)
	if err != nil {
		return err
	}
	m.effects.remove(&m.Effects, lookupKey{id: p.Key})
	m.effects.add(&m.Effects, openMetric{Key: p.Key, Seq: e.Seq, Model: p.Kind == "model" || p.Kind == "llm"})
	return nil
}

func (r *meterEvent) completeEffect() error {
	p, err := event.DecodeKept[event.EffectCompletion](r.e)
	if err != nil {
		return err
	}
	intent := r.effects.remove(&r.Effects, lookupKey{id: p.Key})
	if intent.Model {
		if a := r.find(func(a *answer) bool { return a.Seq > intent.Seq && a.Inherited == r.inherited }); a != nil {
			r.count(a, event.Usage{})
			return nil
		}
	}
	if p.Usage.IsZero() {
		r.cost("")
		return nil
	}
	r.count(r.answer(fmt.Sprintf("effect %d", r.e.Seq), ""), p.Usage)
	return nil
}

func (r *meterEvent) turn() error {
	if r.e.Type.Name() == event.TurnStarted {
		p, err := event.DecodeKept[event.TurnStart](r.e)
		r.Agent, r.Turn, r.Spent, r.Steps = cmp.Or(p.Agent, r.Agent), r.e.ID, false, nil
		r.cost("")
		return err
	}
	p, err := event.DecodeKept[event.TurnCompletion](r.e)
	if err != nil {
		return err
	}
	again := !p.TurnID.IsZero() && p.TurnID == r.Ended
	if r.Spent || again || p.Usage.IsZero() {
		r.cost("")
	} else {
		r.count(r.answer(fmt.Sprintf("turn %d", r.e.Seq), ""), p.Usage)
	}
	if r.Spent && !again {
		r.Ended = p.TurnID
	}
	r.Turn, r.Spent, r.Steps = ulid.ULID{}, false, nil
	return nil
}

// agent sets the agent of the next charges.
func (r *meterEvent) agent() error {
	p, err := event.DecodeKept[struct {
		Agent   string `json:"agent"`
		ToAgent string `json:"to_agent"`
	}](r.e)
	r.Agent = cmp.Or(cmp.Or(p.ToAgent, p.Agent), r.Agent)
	return err
}

func (r *meterEvent) child() error {
	p, err := event.DecodeKept[event.Child](r.e)
	if err != nil {
		return err
	}
	known := r.children.of(&r.Children, func(ids map[string]bool, i int) { ids[r.Children[i]] = true })
	if p.ChildSessionID != "" && !known[p.ChildID] {
		r.Children, known[p.ChildID] = append(r.Children, p.ChildID), true
	}
	if p.Usage.IsZero() || known[p.ChildID] {
		r.cost("")
		return nil
	}
	r.count(r.answer("child "+p.ChildID, ""), p.Usage)
	return nil
}
