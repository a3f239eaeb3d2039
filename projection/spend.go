package projection

import "github.com/convlog/convlog/event"

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
