package parts

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Usage parses the token counts of any of the three shapes; ok is false if there are
// none. OpenAI's input tokens include the cached tokens; in the log and in Anthropic's
// counts they do not.
func Usage(v jsontext.Value) (u event.Usage, ok bool) {
	o, err := Open(v)
	if err != nil {
		return u, false
	}
	c := counter{o: &o}
	u.InputTokens = c.take("input_tokens") + c.take("prompt_tokens")
	u.OutputTokens = c.take("output_tokens") + c.take("completion_tokens")
	u.CacheReadTokens = c.take("cache_read_input_tokens")
	u.CacheWriteTokens = c.take("cache_creation_input_tokens")
	for _, name := range []string{"input_tokens_details", "prompt_tokens_details"} {
		cached := c.within(name, "cached_tokens")
		u.CacheReadTokens += cached
		u.InputTokens = max(0, u.InputTokens-cached)
	}
	u.ReasoningTokens = c.within("output_tokens_details", "reasoning_tokens") + c.within("output_tokens_details", "thinking_tokens") +
		c.within("completion_tokens_details", "reasoning_tokens")
	u.Extra = o.Rest()
	return u, !c.failed && c.found
}

// counter takes numbers out of an object.
type counter struct {
	o             *Members
	found, failed bool
}

func (c *counter) take(name string) (n int64) {
	v := c.o.Peek(name)
	if v.Kind() != '0' {
		return 0
	}
	c.o.Take(name)
	c.found = true
	if json.Unmarshal(v, &n) != nil || n < 0 || n > 1<<48 {
		c.failed = true
		return 0
	}
	return n
}

// within returns a number in an object, and does not remove it.
func (c *counter) within(name, inner string) int64 {
	o, err := Open(c.o.Peek(name))
	if err != nil {
		return 0
	}
	in := counter{o: &o}
	n := in.take(inner)
	c.failed = c.failed || in.failed
	return n
}
