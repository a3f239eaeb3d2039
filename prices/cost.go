package prices

import (
	"math"
	"math/bits"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// cost is the price of an answer. It is false if the answer has tokens of a kind without a
// price.
func (p *Price) cost(u event.Usage) (sum event.Cost, ok bool) {
	hour := min(hourTokens(u), u.CacheWriteTokens)
	reasoning := min(u.ReasoningTokens, u.OutputTokens)
	reasoningPrice := &p.Output
	if p.Reasoning != nil {
		reasoningPrice = p.Reasoning
	}
	for _, x := range []struct {
		tokens int64
		price  *event.Cost
	}{
		{u.InputTokens, &p.Input},
		{u.CacheReadTokens, p.CacheRead},
		{u.CacheWriteTokens - hour, p.CacheWrite},
		{hour, p.CacheWriteHour},
		{u.OutputTokens - reasoning, &p.Output},
		{reasoning, reasoningPrice},
	} {
		if x.tokens > 0 && x.price == nil {
			return 0, false
		}
		if x.tokens > 0 {
			sum = sum.Add(millionths(x.tokens, *x.price))
		}
	}
	return sum, true
}

// millionths is the price of n tokens at a price per million, rounded down.
func millionths(n int64, price event.Cost) event.Cost {
	if n <= 0 || price <= 0 {
		return 0
	}
	const million = 1_000_000
	high, low := bits.Mul64(uint64(n), uint64(price))
	if high >= million {
		return math.MaxInt64
	}
	cost, _ := bits.Div64(high, low, million)
	return event.Cost(min(cost, math.MaxInt64))
}

// hourTokens are the tokens that Anthropic's counters say a cache keeps for an hour.
func hourTokens(u event.Usage) int64 {
	var extra struct {
		CacheCreation struct {
			Hour int64 `json:"ephemeral_1h_input_tokens"`
		} `json:"cache_creation"`
	}
	if u.Extra == nil || json.Unmarshal(u.Extra, &extra) != nil {
		return 0
	}
	return max(extra.CacheCreation.Hour, 0)
}

// speedOf is the speed of an answer if it is not the standard one.
func speedOf(u event.Usage) string {
	var extra struct {
		Speed string `json:"speed"`
	}
	if len(u.Extra) == 0 || json.Unmarshal(u.Extra, &extra) != nil || extra.Speed == "standard" {
		return ""
	}
	return extra.Speed
}
