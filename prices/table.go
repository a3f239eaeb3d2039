package prices

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// Table has the prices of models. The zero value has none.
type Table struct {
	// Sources are the origins of the prices, by the names that prices use.
	Sources map[string]Source `json:"sources"`
	// Models are the prices by the name of the model; see Find.
	Models map[string][]Price `json:"models"`
}

// Source is the origin of prices.
type Source struct {
	Name string `json:"name"`
	URL  string `json:"url,omitzero"`
	// Date is the day or the month for which the source gives its prices, as 2006-01-02 or
	// 2006-01; empty if the source has none.
	Date string `json:"date,omitzero"`
}

// Price is the price of a million tokens, in dollars.
type Price struct {
	// From is the day, in UTC, from which the price holds, as 2006-01-02; empty holds from
	// the start.
	From string `json:"from,omitzero"`
	// Over restricts the price to answers with more tokens than this in the prompt, cached
	// tokens included.
	Over int64 `json:"over,omitzero"`
	// Speed restricts the price to answers whose usage has this speed, for example fast.
	// Empty restricts it to answers of the standard speed.
	Speed string `json:"speed,omitzero"`

	Input  event.Cost `json:"input"`
	Output event.Cost `json:"output"`
	// CacheRead is the price of tokens that are read from a cache. CacheWrite is the price of
	// tokens that are written to it, CacheWriteHour if it keeps them for an hour. Without the
	// price, an answer with such tokens has no estimate.
	CacheRead      *event.Cost `json:"cache_read,omitzero"`
	CacheWrite     *event.Cost `json:"cache_write,omitzero"`
	CacheWriteHour *event.Cost `json:"cache_write_1h,omitzero"`
	// Reasoning is the price of reasoning tokens; without it, they cost as much as Output.
	Reasoning *event.Cost `json:"reasoning,omitzero"`

	// Source names the origin of the price in Table.Sources; it may be empty.
	//
	// In the table of the program, each price has one. Some sources list no caches: for
	// these Claude models, the prices of caches follow from the input by the factors of
	// Anthropic's table (reads 0.1, writes 1.25, writes for an hour 2). The same factor gives
	// the writes of gpt-5.6.
	Source string `json:"source,omitzero"`
}

//go:embed builtin.json
var builtin string

// Builtin is the table in the program.
var Builtin = sync.OnceValue(func() *Table {
	t, err := Read(strings.NewReader(builtin))
	if err != nil {
		panic(err) // the tests read it
	}
	return t
})

// Read reads a table in JSON: one of this package, or the table of LiteLLM
// (model_prices_and_context_window.json). An unknown member, a source that is not listed, a
// price that is no decimal number of dollars, and a day that is no day are errors.
func Read(r io.Reader) (*Table, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	if t, ok, err := readLiteLLM(text); ok || err != nil {
		return t, err
	}
	var t Table
	if err := json.Unmarshal(text, &t, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	models := make(map[string][]Price, len(t.Models))
	for model, list := range t.Models {
		if len(list) == 0 {
			return nil, fmt.Errorf("read prices: model %q has no price", model)
		}
		for _, p := range list {
			if err := p.check(); err != nil {
				return nil, fmt.Errorf("read prices: model %q: %w", model, err)
			}
			if _, ok := t.Sources[p.Source]; !ok && p.Source != "" {
				return nil, fmt.Errorf("read prices: model %q: the source %q is not in sources", model, p.Source)
			}
		}
		models[canonical(model)] = inOrder(list)
	}
	t.Models = models
	return &t, nil
}

// inOrder sorts the prices of a model: the last one that fits an answer counts.
func inOrder(list []Price) []Price {
	slices.SortStableFunc(list, func(a, b Price) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Over, b.Over)) })
	return list
}

func (p *Price) check() error {
	if _, err := time.Parse(time.DateOnly, p.From); p.From != "" && err != nil {
		return fmt.Errorf("from is a day (2026-03-01), not %q", p.From)
	}
	if p.Over < 0 {
		return fmt.Errorf("over is a number of tokens, not %d", p.Over)
	}
	return nil
}

// With returns a table with the prices of both. A model of u has the prices of u only.
func (t *Table) With(u *Table) *Table {
	both := &Table{Sources: maps.Clone(t.Sources), Models: maps.Clone(t.Models)}
	maps.Copy(both.Sources, u.Sources)
	maps.Copy(both.Models, u.Models)
	return both
}

// Cost estimates the cost of an answer that a model gave at a time. It is false without a
// price for the model, for the speed, or for a kind of its tokens.
func (t *Table) Cost(model string, at time.Time, u event.Usage) (event.Cost, bool) {
	p := choose(t.Find(model), at, u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens, speedOf(u))
	if p == nil {
		return 0, false
	}
	return p.cost(u)
}

// choose returns the newest price of a time, for the size of a prompt and the speed of the
// answer; nil if there is none. Before the first day, the oldest prices hold.
func choose(list []Price, at time.Time, prompt int64, speed string) (found *Price) {
	list = slices.DeleteFunc(slices.Clone(list), func(p Price) bool { return p.Speed != speed })
	if len(list) == 0 {
		return nil
	}
	day := at.UTC().Format(time.DateOnly)
	from := list[0].From
	for i := range list {
		if list[i].From <= day {
			from = list[i].From
		}
	}
	found = &list[0]
	for i := range list {
		if p := &list[i]; p.From == from && (p.Over == 0 || prompt > p.Over) {
			found = p
		}
	}
	return found
}

// Find returns the prices of a model; nil if the table has none. The name matches without
// the provider before a slash or a dot, a date or "latest" at its end, and the difference
// between dots and dashes: us.anthropic.claude-sonnet-4-5-20250929-v1:0 is
// claude-sonnet-4.5.
func (t *Table) Find(model string) []Price {
	if t == nil {
		return nil
	}
	name := canonical(model)
	for {
		if list := t.Models[name]; len(list) > 0 {
			return list
		}
		shorter := withoutSuffix(name)
		if shorter == name {
			return nil
		}
		name = shorter
	}
}
