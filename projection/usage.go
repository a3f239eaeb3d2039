package projection

import (
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// UsageState is what a session has spent by itself: on its own events, orphaned
// ones included.
type UsageState struct {
	Total Spend `json:"total,omitzero"`
	// ByModel and ByAgent split Total; the empty name is what names none.
	ByModel map[string]Spend `json:"by_model,omitzero"`
	ByAgent map[string]Spend `json:"by_agent,omitzero"`

	Meter Meter `json:"meter"`
}

// Usage is what a session has spent by itself. Cost is the sum of what its
// events cost, to the nano-dollar. Tokens are those of the answers of models,
// each counted once:
//
//   - Messages with one response id, or one group, are one answer, whose last
//     usage counts. A message with neither is an answer by itself, unless a step
//     is under way: then it belongs to the step.
//   - A step_completed belongs to the answer with its response id, else to the
//     newest answer since its step_started; its usage, if it has one, replaces
//     that of the messages. Without such an answer it is one.
//   - An effect_completed counts by itself, unless its effect_intended is of kind
//     "model" or "llm": then its usage counts only if there was no answer since.
//     A fork knows nothing of what its parent intended.
//   - A turn_completed with usage counts where nothing else did in the turn.
//   - A child's usage counts where the child has no session of its own; its last
//     one replaces those before.
//
// Events that a copy inherited, marked so in their metadata, and a fork's shared
// prefix are left out.
func Usage() Projection[UsageState] {
	return Projection[UsageState]{
		builtin: true, Name: "usage", Version: 1, Scope: event.SessionScope, Apply: (*UsageState).apply, Digest: noDigest[UsageState],
	}
}

func (s *UsageState) apply(e *event.Event) error {
	if e.Type.Name() == event.SessionForked {
		*s = UsageState{Meter: s.Meter}
		s.Meter.inherit()
	}
	return s.Meter.Read(e, e.Inherited(), s.add)
}

// add takes in a change of what was spent on a model by an agent.
func (s *UsageState) add(c Charge) {
	s.Total = s.Total.Add(c.Spend)
	s.ByModel = addTo(s.ByModel, c.Model, c.Spend)
	s.ByAgent = addTo(s.ByAgent, c.Agent, c.Spend)
}

func addTo(m map[string]Spend, name string, s Spend) map[string]Spend {
	sum := m[name].Add(s)
	if sum.IsZero() {
		delete(m, name)
		return m
	}
	if m == nil {
		m = map[string]Spend{}
	}
	m[name] = sum
	return m
}

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
