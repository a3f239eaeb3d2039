package codex

import (
	"cmp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// turnEnd converts the end of a task. If no record began the named turn, the event ends
// the current turn: a review does so.
func (s *session) turnEnd(l *line) event.Payload {
	var p struct {
		Duration int64 `json:"duration_ms"`
	}
	l.decode(&p)
	end := event.TurnCompletion{
		TurnID: s.turns[l.text("turn_id")], Status: event.TurnStatusCompleted, Steps: s.turn.steps,
		DurationMS: max(0, p.Duration), Extra: l.payloadExtra(),
	}
	if end.TurnID.IsZero() {
		end.TurnID = s.turn.id
	}
	failure := l.members.Peek("error")
	switch {
	case l.isEvent("turn_aborted"):
		end.StopReason = l.text("reason")
		end.Status = event.TurnStatusAborted
		if end.StopReason == "interrupted" {
			end.Status = event.TurnStatusInterrupted
		}
	case failure.Kind() == '{' || failure.Kind() == '"':
		end.Status = event.TurnStatusFailed
		end.Error = cmp.Or(l.text("error"), extraText(failure, "message"), string(failure))
	}
	return end
}

// step converts a token_count; nil if its total is not new. The total covers the session
// so far; the last_token_usage covers the newest response.
func (s *session) step(l *line) event.Payload {
	extra := l.payloadExtra()
	total := totalOf(extra)
	usage, ok := usageOf(member(l.members.Peek("info"), "last_token_usage"))
	if total == "" || total == s.total || !ok {
		return nil
	}
	return event.StepCompletion{
		Step: s.turn.steps, TurnID: s.turn.id, Provider: s.labels[providerLabel], Model: s.labels[modelLabel], Usage: usage, Extra: extra,
	}
}

// totalOf is the total of a token_count; empty if it has none.
func totalOf(payload jsontext.Value) string {
	return canonical(member(member(payload, "info"), "total_token_usage"))
}

// canonical returns equal strings for equal JSON values.
func canonical(v jsontext.Value) string {
	c := v.Clone()
	if len(c) == 0 || c.Canonicalize() != nil {
		return string(v)
	}
	return string(c)
}

// usageOf parses a token count. Its input includes the tokens read from a cache and
// written to one.
func usageOf(v jsontext.Value) (u event.Usage, ok bool) {
	var p struct {
		Input     int64 `json:"input_tokens"`
		Cached    int64 `json:"cached_input_tokens"`
		Written   int64 `json:"cache_write_input_tokens"`
		Output    int64 `json:"output_tokens"`
		Reasoning int64 `json:"reasoning_output_tokens"`
	}
	if v.Kind() != '{' || json.Unmarshal(v, &p) != nil || min(p.Input, p.Cached, p.Written, p.Output, p.Reasoning) < 0 {
		return u, false
	}
	return event.Usage{
		InputTokens: max(0, p.Input-p.Cached-p.Written), CacheReadTokens: p.Cached, CacheWriteTokens: p.Written,
		OutputTokens: p.Output, ReasoningTokens: p.Reasoning,
	}, true
}
