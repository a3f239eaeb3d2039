package projection

import "github.com/convlog/convlog/event"

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

// Spend is what something cost.
type Spend struct {
	Cost  event.Cost  `json:"cost,omitzero"`
	Usage event.Usage `json:"usage,omitzero"`
	// Responses counts the answers of models, and Unpriced those of them that
	// used tokens and have no cost.
	Responses int `json:"responses,omitzero"`
	Unpriced  int `json:"unpriced,omitzero"`
}

// IsZero reports whether nothing was spent.
func (s Spend) IsZero() bool {
	return s.Cost == 0 && s.Usage.IsZero() && s.Responses == 0 && s.Unpriced == 0
}

// Add is the sum of both.
func (s Spend) Add(t Spend) Spend {
	return Spend{Cost: s.Cost.Add(t.Cost), Usage: s.Usage.Add(t.Usage), Responses: s.Responses + t.Responses, Unpriced: s.Unpriced + t.Unpriced}
}

// minus is what is left of s without t, a part of it.
func (s Spend) minus(t Spend) Spend {
	u, v := s.Usage, t.Usage
	return Spend{Cost: s.Cost - t.Cost, Responses: s.Responses - t.Responses, Unpriced: s.Unpriced - t.Unpriced,
		Usage: event.Usage{
			InputTokens:      u.InputTokens - v.InputTokens,
			OutputTokens:     u.OutputTokens - v.OutputTokens,
			CacheReadTokens:  u.CacheReadTokens - v.CacheReadTokens,
			CacheWriteTokens: u.CacheWriteTokens - v.CacheWriteTokens,
			ReasoningTokens:  u.ReasoningTokens - v.ReasoningTokens,
		}}
}
