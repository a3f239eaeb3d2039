package projection

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// recentAnswers is how many answers a Meter remembers, to know more pieces of
// them when they come.
const recentAnswers = 64

// Meter turns events into charges, each answer of a model counted once. It
// remembers the newest 64 answers; a piece of an older one counts anew.
type Meter struct {
	// Agent is who speaks now, Turn the turn under way, and Spent whether it used
	// any tokens.
	Agent string    `json:"agent,omitzero"`
	Turn  ulid.ULID `json:"turn,omitzero"`
	Spent bool      `json:"spent,omitzero"`
	// Steps and Effects are under way; Answers are the newest, oldest first.
	Steps   []openStep   `json:"steps,omitzero"`
	Effects []openMetric `json:"effects,omitzero"`
	Answers []answer     `json:"answers,omitzero"`

	effects lookup[openMetric, *openMetric]
}

// Charge is a change of what was spent; the spend of a correction may be
// negative.
type Charge struct {
	Spend
	Model string
	Agent string
	Turn  ulid.ULID
}

// answer is what was counted for an answer of a model.
type answer struct {
	ID string `json:"id"`
	// Response is the provider's id, if it is known.
	Response string      `json:"response,omitzero"`
	Model    string      `json:"model,omitzero"`
	Agent    string      `json:"agent,omitzero"`
	Turn     ulid.ULID   `json:"turn,omitzero"`
	Usage    event.Usage `json:"usage,omitzero"`
	// Seq is that of its first event, Priced whether any of them has a cost.
	Seq       int64 `json:"seq"`
	Priced    bool  `json:"priced,omitzero"`
	Inherited bool  `json:"inherited,omitzero"`
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

func (o *openMetric) keyed() (string, int64) { return o.Key, o.Seq }

// Read takes in an event and tells its charges. What is inherited is told to
// nobody, but remembered.
func (m *Meter) Read(e *event.Event, inherited bool, tell func(Charge)) error {
	r := reading{Meter: m, e: e, inherited: inherited, tell: tell}
	switch e.Type.Name() {
	case event.MessageAdded:
		return r.message()
	case event.StepStarted:
		return r.startStep()
	case event.StepCompleted:
		return r.completeStep()
	case event.EffectIntended, event.EffectCompleted:
		return r.effect()
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

// inherit says that what was read so far is another session's.
func (m *Meter) inherit() {
	for i := range m.Answers {
		m.Answers[i].Inherited = true
	}
}

// find is a remembered answer; nil if there is none.
func (m *Meter) find(is func(a *answer) bool) *answer {
	for i := len(m.Answers) - 1; i >= 0; i-- {
		if is(&m.Answers[i]) {
			return &m.Answers[i]
		}
	}
	return nil
}

func (m *Meter) remember(a answer) *answer {
	if n := len(m.Answers) + 1 - recentAnswers; n > 0 {
		m.Answers = slices.Delete(m.Answers, 0, n)
	}
	m.Answers = append(m.Answers, a)
	return &m.Answers[len(m.Answers)-1]
}

// reading is a Meter at one event.
type reading struct {
	*Meter
	e         *event.Event
	inherited bool
	tell      func(Charge)
}

// charge tells a change, unless it is counted elsewhere.
func (r *reading) charge(c Charge) {
	if !r.inherited && !c.Spend.IsZero() {
		r.tell(c)
	}
}

// cost charges what the event itself cost.
func (r *reading) cost(model string) {
	r.charge(Charge{Spend: Spend{Cost: r.e.Cost}, Model: model, Agent: r.Agent, Turn: r.Turn})
}

// count charges the event's cost and usage to an answer: usage, if it is
// any, replaces what was counted for the answer.
func (r *reading) count(a *answer, usage event.Usage) {
	before := a.counted()
	if !usage.IsZero() {
		a.Usage = event.Usage{}.Add(usage)
		r.Spent = r.Spent || !a.Usage.IsZero()
	}
	a.Priced = a.Priced || r.e.Cost > 0
	change := a.counted().minus(before)
	change.Cost = r.e.Cost
	r.charge(Charge{Spend: change, Model: a.Model, Agent: a.Agent, Turn: a.Turn})
}

// counted is what is charged for an answer, but for costs.
func (a *answer) counted() (s Spend) {
	s.Usage = a.Usage
	if !a.Usage.IsZero() || a.Priced {
		s.Responses = 1
	}
	if !a.Usage.IsZero() && !a.Priced {
		s.Unpriced = 1
	}
	return s
}

// answer finds the answer with an id, or begins it. One that was inherited is
// none of this session's.
func (r *reading) answer(id, model string) *answer {
	if a := r.find(func(a *answer) bool { return a.ID == id && a.Inherited == r.inherited }); a != nil {
		return a
	}
	return r.remember(answer{ID: id, Model: model, Agent: r.Agent, Turn: r.Turn, Seq: r.e.Seq, Inherited: r.inherited})
}

func (r *reading) message() error {
	m, err := event.DecodeKept[struct {
		Role       event.Role  `json:"role"`
		Model      string      `json:"model"`
		ResponseID string      `json:"response_id"`
		Group      string      `json:"group"`
		Usage      event.Usage `json:"usage"`
	}](r.e)
	if err != nil {
		return err
	}
	if m.Usage.IsZero() && (r.e.Cost == 0 || m.Role != event.Assistant) {
		r.cost(m.Model)
		return nil
	}
	id := fmt.Sprintf("message %d", r.e.Seq)
	switch n := len(r.Steps); {
	case m.Group != "": // redaction keeps it
		id = "group " + m.Group
	case m.ResponseID != "":
		id = "response " + m.ResponseID
	case n > 0:
		id, m.Model = r.Steps[n-1].id(), cmp.Or(m.Model, r.Steps[n-1].Model)
	}
	a := r.answer(id, m.Model)
	if m.ResponseID != "" {
		a.Response = m.ResponseID
	}
	r.count(a, m.Usage)
	return nil
}

func (s *openStep) id() string { return fmt.Sprintf("step %d", s.Seq) }

func (r *reading) startStep() error {
	p, err := event.DecodeKept[event.StepStart](r.e)
	r.Steps = append(r.Steps, openStep{TurnID: p.TurnID, Step: p.Step, Seq: r.e.Seq, Model: p.Model})
	r.Agent = cmp.Or(p.Agent, r.Agent)
	r.cost(p.Model)
	return err
}

func (r *reading) completeStep() error {
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
		return p.ResponseID != "" && a.Response == p.ResponseID && a.Inherited == r.inherited
	})
	if a == nil {
		a = r.find(func(a *answer) bool {
			return a.Seq >= step.Seq && (p.ResponseID == "" || a.Response == "") && a.Inherited == r.inherited
		})
	}
	if a == nil && p.Usage.IsZero() && r.e.Cost == 0 {
		return nil
	}
	if a == nil {
		a = r.answer(step.id(), cmp.Or(p.Model, step.Model))
	}
	a.Response = cmp.Or(a.Response, p.ResponseID)
	r.count(a, p.Usage)
	return nil
}

func (r *reading) effect() error {
	p, err := event.DecodeKept[struct {
		Key   string      `json:"key"`
		Kind  string      `json:"kind"`
		Usage event.Usage `json:"usage"`
	}](r.e)
	if err != nil {
		return err
	}
	intent := r.effects.take(&r.Effects, p.Key)
	if r.e.Type.Name() == event.EffectIntended {
		r.effects.add(&r.Effects, openMetric{Key: p.Key, Seq: r.e.Seq, Model: p.Kind == "model" || p.Kind == "llm"})
		r.cost("")
		return nil
	}
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

func (r *reading) turn() error {
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
	if r.Spent || p.Usage.IsZero() {
		r.cost("")
	} else {
		r.count(r.answer(fmt.Sprintf("turn %d", r.e.Seq), ""), p.Usage)
	}
	r.Turn, r.Spent, r.Steps = ulid.ULID{}, false, nil
	return nil
}

// agent notes who speaks from here on.
func (r *reading) agent() error {
	p, err := event.DecodeKept[struct {
		Agent   string `json:"agent"`
		ToAgent string `json:"to_agent"`
	}](r.e)
	r.Agent = cmp.Or(cmp.Or(p.ToAgent, p.Agent), r.Agent)
	return err
}

func (r *reading) child() error {
	p, err := event.DecodeKept[event.Child](r.e)
	if err != nil {
		return err
	}
	if p.ChildSessionID != "" || p.Usage.IsZero() {
		r.cost("")
		return nil
	}
	r.count(r.answer("child "+p.ChildID, ""), p.Usage)
	return nil
}
