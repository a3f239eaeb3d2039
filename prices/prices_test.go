package prices_test

import (
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/prices"
)

func day(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

const table = `{"sources":{"list":{"name":"A list","date":"2026-01-01"}},"models":{"m-1":[
	{"from":"2026-06-01","input":2,"output":10,"source":"list"},
	{"over":100,"input":8,"output":80,"cache_read":0.8,"source":"list"},
	{"speed":"fast","input":40,"output":400,"source":"list"},
	{"input":4,"output":40,"cache_read":0.4,"cache_write":5,"cache_write_1h":8,"reasoning":20,"source":"list"}]}}`

func TestCost(t *testing.T) {
	read, err := prices.Read(strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		model string
		day   string
		usage event.Usage
		want  string
		known bool
	}{
		"input and output": {"m-1", "2026-01-02", event.Usage{InputTokens: 50, OutputTokens: 10}, "0.0006", true},
		"caches":           {"m-1", "2026-01-02", event.Usage{CacheReadTokens: 10, CacheWriteTokens: 20}, "0.000104", true},
		"an hour": {"m-1", "2026-01-02", event.Usage{CacheWriteTokens: 20,
			Extra: []byte(`{"cache_creation":{"ephemeral_1h_input_tokens":15,"ephemeral_5m_input_tokens":5}}`)}, "0.000145", true},
		"reasoning is a part of the output": {"m-1", "2026-01-02", event.Usage{OutputTokens: 10, ReasoningTokens: 4}, "0.00032", true},
		"a long prompt, caches included":    {"m-1", "2026-01-02", event.Usage{InputTokens: 50, CacheReadTokens: 51}, "0.0004408", true},
		"a kind without a price":            {"m-1", "2026-01-02", event.Usage{InputTokens: 101, CacheWriteTokens: 1}, "0", false},
		"an hour without a price": {"m-1", "2026-01-02", event.Usage{InputTokens: 101, CacheWriteTokens: 1,
			Extra: []byte(`{"cache_creation":{"ephemeral_1h_input_tokens":1}}`)}, "0", false},
		"a fast answer":                     {"m-1", "2026-01-02", event.Usage{InputTokens: 50, Extra: []byte(`{"speed":"fast"}`)}, "0.002", true},
		"a fast answer, with cached input":  {"m-1", "2026-01-02", event.Usage{CacheReadTokens: 50, Extra: []byte(`{"speed":"fast"}`)}, "0", false},
		"an answer of the standard speed":   {"m-1", "2026-01-02", event.Usage{InputTokens: 50, Extra: []byte(`{"speed":"standard"}`)}, "0.0002", true},
		"a speed without a price":           {"m-1", "2026-01-02", event.Usage{InputTokens: 50, Extra: []byte(`{"speed":"ludicrous"}`)}, "0", false},
		"the limit is not over":             {"m-1", "2026-01-02", event.Usage{InputTokens: 50, CacheReadTokens: 50}, "0.00022", true},
		"a later price, which has one size": {"m-1", "2026-06-01", event.Usage{InputTokens: 200}, "0.0004", true},
		"no tokens":                         {"m-1", "2026-06-01", event.Usage{}, "0", true},
		"another model":                     {"m-2", "2026-06-01", event.Usage{InputTokens: 200}, "0", false},
		"no model":                          {"", "2026-06-01", event.Usage{InputTokens: 200}, "0", false},
	} {
		cost, known := read.Cost(test.model, day(t, test.day), test.usage)
		if cost.String() != test.want || known != test.known {
			t.Errorf("%s: %v, %v; want %v, %v", name, cost, known, test.want, test.known)
		}
	}
}

func TestFind(t *testing.T) {
	for model, same := range map[string]string{
		"claude-sonnet-4-5-20250929":                 "claude-sonnet-4-5",
		"us.anthropic.claude-sonnet-4-20250514-v1:0": "claude-sonnet-4",
		"anthropic/claude-opus-4.5":                  "claude-opus-4-5",
		"claude-opus-4-5@20251101":                   "claude-opus-4-5",
		"claude-3-5-haiku-latest":                    "claude-3-5-haiku",
		"openai/gpt-4o-2024-08-06":                   "gpt-4o",
		"GPT-5.4":                                    "gpt-5.4",
		"models/gemini-2.5-pro-preview-06-05":        "gemini-2.5-pro",
	} {
		got, want := prices.Builtin().Find(model), prices.Builtin().Find(same)
		if len(want) == 0 || len(got) == 0 || &got[0] != &want[0] {
			t.Errorf("the prices of %s are not the prices of %s", model, same)
		}
	}
	for _, model := range []string{"gpt-5.4-turbo", "claude", "sonnet", "", "-", "x/", "gpt-5.4-mini-of-mine"} {
		if got := prices.Builtin().Find(model); got != nil {
			t.Errorf("%q has the prices %v", model, got)
		}
	}
}

// The table of the program is plausible: every price has a source, output costs at least
// as much as input, and a cache read no more.
func TestBuiltin(t *testing.T) {
	for model, list := range prices.Builtin().Models {
		for _, p := range list {
			if _, ok := prices.Builtin().Sources[p.Source]; !ok {
				t.Errorf("%s: no source", model)
			}
			if p.Input <= 0 || p.Output < p.Input || p.CacheRead != nil && *p.CacheRead > p.Input || p.Output > 1000*event.Dollar {
				t.Errorf("%s: %+v", model, p)
			}
		}
	}
	for name, s := range prices.Builtin().Sources {
		if s.Name == "" || !strings.HasPrefix(s.URL, "https://") {
			t.Errorf("source %s: %+v", name, s)
		}
	}
}

func TestWith(t *testing.T) {
	mine, err := prices.Read(strings.NewReader(`{"sources":{"me":{"name":"A contract","date":"2026-01-01"}},
		"models":{"gpt-5.4":[{"input":1,"output":1,"source":"me"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	both := prices.Builtin().With(mine)
	u := event.Usage{InputTokens: 1_000_000}
	if c, _ := both.Cost("gpt-5.4", time.Now(), u); c != event.Dollar {
		t.Errorf("a million tokens cost %v", c)
	}
	if _, known := both.Cost("claude-opus-4-5", time.Now(), u); !known || len(both.Sources) != len(prices.Builtin().Sources)+1 {
		t.Error("the prices of the program are gone")
	}
}

// The fast mode of Claude Opus 4.6, as in the fixture of the importer.
func TestFast(t *testing.T) {
	u := event.Usage{InputTokens: 100_000, OutputTokens: 10_000, Extra: []byte(`{"speed":"fast"}`)}
	if c, known := prices.Builtin().Cost("claude-opus-4-6", day(t, "2026-03-01"), u); c != 4*event.Dollar+event.Dollar/2 || !known {
		t.Errorf("%v, %v", c, known)
	}
	if _, known := prices.Builtin().Cost("claude-haiku-4-5", day(t, "2026-03-01"), u); known {
		t.Error("a model without a fast mode has a price for it")
	}
}

// Long prompts of Claude have prices of their own, until a day for some models.
func TestLongPrompts(t *testing.T) {
	for name, test := range map[string]struct {
		model, day string
		prompt     int64
		want       string
	}{
		"short":                 {"claude-sonnet-4-5", "2026-05-01", 200_000, "0.75"},
		"long":                  {"claude-sonnet-4-5", "2026-05-01", 200_001, "1.425006"},
		"long, in beta":         {"claude-opus-4-6", "2026-03-12", 400_000, "4.375"},
		"long, without premium": {"claude-opus-4-6", "2026-03-13", 400_000, "2.25"},
	} {
		u := event.Usage{InputTokens: test.prompt, OutputTokens: 10_000}
		if c, _ := prices.Builtin().Cost(test.model, day(t, test.day), u); c.String() != test.want {
			t.Errorf("%s: %v; want %s", name, c, test.want)
		}
	}
}

// A table of LiteLLM has prices for one token, for long prompts by the end of their names, and
// factors for a fast mode. Rows without prices of tokens are left out.
func TestLiteLLM(t *testing.T) {
	read, err := prices.Read(strings.NewReader(`{"sample_spec":{"input_cost_per_token":0.0,"output_cost_per_token":0.0,"mode":"one of: chat"},
		"openrouter/maker/m-1":{"input_cost_per_token":9e-06,"output_cost_per_token":9e-06},
		"m-1":{"input_cost_per_token":3e-06,"output_cost_per_token":1.5e-05,"cache_read_input_token_cost":3e-07,"cache_creation_input_token_cost":3.75e-06,
			"cache_creation_input_token_cost_above_1hr":6e-06,"input_cost_per_token_above_200k_tokens":6e-06,"output_cost_per_token_above_200k_tokens":2.25e-05,
			"litellm_provider":"maker","max_tokens":"none","provider_specific_entry":{"us":1.1,"fast":6.0}},
		"m-image":{"output_cost_per_image":0.06}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Models) != 1 {
		t.Errorf("%d models, want 1", len(read.Models))
	}
	for name, test := range map[string]struct {
		usage event.Usage
		want  string
	}{
		"plain":   {event.Usage{InputTokens: 1000, OutputTokens: 100, CacheReadTokens: 1000, CacheWriteTokens: 1000}, "0.00855"},
		"an hour": {event.Usage{CacheWriteTokens: 1000, Extra: []byte(`{"cache_creation":{"ephemeral_1h_input_tokens":1000}}`)}, "0.006"},
		"long":    {event.Usage{InputTokens: 200_001}, "1.200006"},
		"fast":    {event.Usage{InputTokens: 1000, OutputTokens: 100, Extra: []byte(`{"speed":"fast"}`)}, "0.027"},
	} {
		if c, known := read.Cost("maker/m-1", time.Now(), test.usage); c.String() != test.want || !known {
			t.Errorf("%s: %v, %v; want %s", name, c, known, test.want)
		}
	}
	if _, err := prices.Read(strings.NewReader(`{"m-1":{"input_cost_per_token":-1,"output_cost_per_token":1}}`)); err == nil || !strings.Contains(err.Error(), "m-1") {
		t.Errorf("a negative price: %v", err)
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		`{"models":{"m":[{"input":1,"output":2,"source":"x"}]}}`: `model "m": the source "x" is not in sources`,
		`{"models":{"m":[]}}`: `model "m" has no price`,
		`{"sources":{"x":{"name":"x"}},"models":{"m":[{"input":1,"output":2,"from":"May","source":"x"}]}}`: `from is a day (2026-03-01), not "May"`,
		`{"sources":{"x":{"name":"x"}},"models":{"m":[{"input":1,"output":2,"over":-1,"source":"x"}]}}`:    `over is a number of tokens, not -1`,
		`{"sources":{"x":{"name":"x"}},"models":{"m":[{"input":-1,"output":2,"source":"x"}]}}`:             `-1`,
		`{"models":{"m":[{"inputs":1}]}}`: `inputs`,
		`nothing`:                         `read prices`,
	} {
		if _, err := prices.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
