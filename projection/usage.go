package projection

import "github.com/convlog/convlog/event"

// UsageState is the spend of a session's own events, orphaned events included.
type UsageState struct {
	Total Spend `json:"total,omitzero"`
	// ByModel and ByAgent split Total. The empty name is spend without a model or
	// agent.
	ByModel map[string]Spend `json:"by_model,omitzero"`
	ByAgent map[string]Spend `json:"by_agent,omitzero"`

	Meter Meter `json:"meter"`
}

// Usage is the spend of a session's own events. Cost is the sum of the costs of the
// events, to the nano-dollar. Tokens are the usage of model answers, each counted
// once:
//
//   - Messages with one response id, or one group, are one answer. Its last usage counts. A
//     message with neither is an answer by itself, except during a step: then it belongs to
//     the step.
//   - A step_completed belongs to the answer with its response id or, without one, to the
//     newest answer since its step_started. Without a step_started, it belongs to the newest
//     answer of the turn and the agent if that has no tokens and no cost. Its usage replaces
//     the usage of the messages. Without an answer it is an answer itself if it has tokens.
//   - A message of the assistant without tokens and a cost is an answer whose usage is
//     unknown. In a session with effects, it is one only with a model, a group or a
//     response id.
//   - An effect_completed counts by itself, except if its effect_intended is of kind "model"
//     or "llm": then its usage counts only without an answer since. A fork does not know the
//     intents of its parent.
//   - A turn_completed with usage counts if nothing else counted in the turn, also before a
//     retry of it.
//   - A child's usage counts if no event of the child so far has named a session of its own.
//     Its last usage replaces earlier ones.
//
// Usage leaves out the prefix that a fork shares, and events that a copy marks as
// inherited in their metadata.
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
	if free, err := s.Meter.free(e); free {
		return err
	}
	return s.Meter.Read(e, e.Inherited(), s.add)
}

// add adds a charge to the totals.
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

// Spend is costs and tokens.
type Spend struct {
	Cost  event.Cost  `json:"cost,omitzero"`
	Usage event.Usage `json:"usage,omitzero"`
	// Responses counts the answers of models. Unpriced counts the answers with tokens
	// and without a cost, and Unknown the answers without either.
	Responses int `json:"responses,omitzero"`
	Unpriced  int `json:"unpriced,omitzero"`
	Unknown   int `json:"unknown,omitzero"`
	// Estimate is a guess of the cost of Estimated of the unpriced answers. It is no part
	// of Cost. Both are zero in states: package runlog estimates with a table of prices.
	Estimate  event.Cost `json:"estimate,omitzero"`
	Estimated int        `json:"estimated,omitzero"`
}

// IsZero reports whether nothing was spent.
func (s Spend) IsZero() bool {
	return s.Cost == 0 && s.Usage.IsZero() && s.Responses == 0 && s.Unpriced == 0 && s.Unknown == 0 && s.Estimate == 0 && s.Estimated == 0
}

// Add returns the sum of s and t.
func (s Spend) Add(t Spend) Spend {
	return Spend{Cost: s.Cost.Add(t.Cost), Usage: s.Usage.Add(t.Usage), Responses: s.Responses + t.Responses, Unpriced: s.Unpriced + t.Unpriced, Unknown: s.Unknown + t.Unknown,
		Estimate: s.Estimate.Add(t.Estimate), Estimated: s.Estimated + t.Estimated}
}

// sub returns s without t.
func (s Spend) sub(t Spend) Spend {
	u, v := s.Usage, t.Usage
	return Spend{Cost: s.Cost - t.Cost, Responses: s.Responses - t.Responses, Unpriced: s.Unpriced - t.Unpriced, Unknown: s.Unknown - t.Unknown,
		Usage: event.Usage{
			InputTokens:      u.InputTokens - v.InputTokens,
			OutputTokens:     u.OutputTokens - v.OutputTokens,
			CacheReadTokens:  u.CacheReadTokens - v.CacheReadTokens,
			CacheWriteTokens: u.CacheWriteTokens - v.CacheWriteTokens,
			ReasoningTokens:  u.ReasoningTokens - v.ReasoningTokens,
		}}
}
