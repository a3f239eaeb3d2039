package event

import "github.com/go-json-experiment/json/jsontext"

// Usage counts the tokens of model calls.
type Usage struct {
	// InputTokens excludes those read from or written to a prompt cache.
	InputTokens      int64 `json:"input_tokens,omitzero"`
	OutputTokens     int64 `json:"output_tokens,omitzero"`
	CacheReadTokens  int64 `json:"cache_read_tokens,omitzero"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitzero"`
	// ReasoningTokens is the number of OutputTokens spent on reasoning.
	ReasoningTokens int64 `json:"reasoning_tokens,omitzero"`
	// Extra is an object of the provider's own counters, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// IsZero reports whether nothing was counted.
func (u Usage) IsZero() bool { return u.Extra == nil && u.counters() == counters{} }

// Add is the sum of both, each counter at most the largest number. Extra is dropped,
// because its meaning is unknown.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:      addWithin(u.InputTokens, v.InputTokens),
		OutputTokens:     addWithin(u.OutputTokens, v.OutputTokens),
		CacheReadTokens:  addWithin(u.CacheReadTokens, v.CacheReadTokens),
		CacheWriteTokens: addWithin(u.CacheWriteTokens, v.CacheWriteTokens),
		ReasoningTokens:  addWithin(u.ReasoningTokens, v.ReasoningTokens),
	}
}

type counters [5]int64

func (u Usage) counters() counters {
	return counters{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens}
}

func (u Usage) check() error {
	for _, n := range u.counters() {
		if err := requireMin("usage", n, 0); err != nil {
			return err
		}
	}
	return requireObject("usage.extra", u.Extra)
}
