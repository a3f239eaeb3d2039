package prices

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// The table of LiteLLM is an object of models. Its prices are dollars for one token.

// liteMembers are the prices of LiteLLM.
var liteMembers = map[string]func(*Price) **event.Cost{
	"cache_read_input_token_cost":               func(p *Price) **event.Cost { return &p.CacheRead },
	"cache_creation_input_token_cost":           func(p *Price) **event.Cost { return &p.CacheWrite },
	"cache_creation_input_token_cost_above_1hr": func(p *Price) **event.Cost { return &p.CacheWriteHour },
	"output_cost_per_reasoning_token":           func(p *Price) **event.Cost { return &p.Reasoning },
}

const (
	liteInput  = "input_cost_per_token"
	liteOutput = "output_cost_per_token"
)

// above is the end of a price for long prompts.
var above = regexp.MustCompile(`_above_(\d+)k_tokens$`)

// readLiteLLM reads a table of LiteLLM. ok is false if the text is none.
func readLiteLLM(text []byte) (t *Table, ok bool, err error) {
	var models map[string]jsontext.Value
	if json.Unmarshal(text, &models) != nil || models["models"] != nil {
		return nil, false, nil // the caller names the error
	}
	names := make([]string, 0, len(models))
	for name := range models {
		names = append(names, name)
	}
	// A model has a row for each provider. The row with the fewest providers in its name counts.
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), cmp.Compare(a, b)) })
	t = &Table{Sources: map[string]Source{"litellm": {Name: "LiteLLM"}}, Models: map[string][]Price{}}
	for _, name := range names {
		list, err := litePrices(models[name])
		if err != nil {
			return nil, true, fmt.Errorf("read prices: model %q: %w", name, err)
		}
		if key := canonical(name); list != nil && t.Models[key] == nil && name != "sample_spec" {
			t.Models[key] = inOrder(list)
		}
	}
	return t, len(t.Models) > 0, nil
}

// litePrices are the prices of a model; nil if it has none for tokens.
func litePrices(row jsontext.Value) ([]Price, error) {
	var members map[string]jsontext.Value
	if row.Kind() != '{' || json.Unmarshal(row, &members) != nil {
		return nil, nil
	}
	if members[liteInput] == nil || members[liteOutput] == nil {
		return nil, nil
	}
	base, err := litePrice(members, "", 0, Price{Source: "litellm"})
	if err != nil {
		return nil, err
	}
	list := []Price{base}
	for name := range members {
		m := above.FindStringSubmatch(name)
		if m == nil || !strings.HasPrefix(name, liteInput) {
			continue
		}
		thousands, err := strconv.ParseInt(m[1], 10, 32)
		if err != nil {
			return nil, err
		}
		long, err := litePrice(members, m[0], thousands*1000, base)
		if err != nil {
			return nil, err
		}
		list = append(list, long)
	}
	return append(list, liteSpeeds(members["provider_specific_entry"], list)...), nil
}

// litePrice reads the prices whose names have an end. The others are as in base.
func litePrice(members map[string]jsontext.Value, end string, over int64, base Price) (Price, error) {
	p := base
	p.Over = over
	for name, target := range map[string]*event.Cost{liteInput: &p.Input, liteOutput: &p.Output} {
		if v := members[name+end]; v != nil {
			cost, err := perMillion(v)
			if err != nil {
				return p, fmt.Errorf("%s: %w", name+end, err)
			}
			*target = cost
		}
	}
	for name, member := range liteMembers {
		if v := members[name+end]; v != nil {
			cost, err := perMillion(v)
			if err != nil {
				return p, fmt.Errorf("%s: %w", name+end, err)
			}
			*member(&p) = &cost
		}
	}
	return p, nil
}

// liteSpeeds are the prices of a fast mode, which LiteLLM gives as a factor.
func liteSpeeds(entry jsontext.Value, list []Price) (fast []Price) {
	var factors struct {
		Fast float64 `json:"fast"`
	}
	if entry == nil || json.Unmarshal(entry, &factors) != nil || factors.Fast <= 0 {
		return nil
	}
	times := func(c event.Cost) event.Cost { return event.Cost(float64(c) * factors.Fast) }
	for _, p := range list {
		p.Speed, p.Input, p.Output = "fast", times(p.Input), times(p.Output)
		for _, member := range liteMembers {
			if c := member(&p); *c != nil {
				cost := times(**c)
				*c = &cost
			}
		}
		fast = append(fast, p)
	}
	return fast
}

// perMillion is the price of a million tokens, of the price of one.
func perMillion(v jsontext.Value) (event.Cost, error) {
	price, ok := new(big.Rat).SetString(strings.Trim(string(v), `"`))
	if !ok || price.Sign() < 0 {
		return 0, fmt.Errorf("the price is %s, not a number of dollars", v)
	}
	price.Mul(price, new(big.Rat).SetInt64(1_000_000))
	amount, _ := price.Float64()
	return event.USD(amount)
}
