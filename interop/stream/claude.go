package stream

import (
	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// addClaude adds a line of Claude Code. The messages of a sub-agent name the call that
// started it.
func (b *builder) addClaude(id string, rec *records.Record, o *parts.Members, kind string) {
	s := b.session(id, rec)
	if call := o.PeekText("parent_tool_use_id"); call != "" {
		s = b.session(id+"-"+document.Name(call), rec)
		s.About.Parent = event.SessionParent{SessionID: id, CallID: call}
	}
	s.About.Agent = "claude-code"
	switch {
	case kind == "system" && o.PeekText("subtype") == "init" && s.About.CWD == "":
		s.About.CWD = o.PeekText("cwd")
		s.raw(rec, kind)
	case kind == "assistant" || kind == "user":
		s.addSaid(rec, o, kind)
	case kind == "result":
		s.addTotals(rec)
		s.raw(rec, kind)
	default:
		s.raw(rec, kind)
	}
}

// addSaid adds an answer, results or a message of the user.
func (s *session) addSaid(rec *records.Record, o *parts.Members, kind string) {
	message, err := parts.Open(o.Peek("message"))
	if err != nil || message.PeekText("role") != kind {
		s.raw(rec, kind)
		return
	}
	m := event.Message{Role: event.Role(kind)}
	m.Parts, err = s.reader.Content(message.Take("content"))
	if err != nil {
		s.raw(rec, kind)
		return
	}
	if len(m.ToolResults()) > 0 {
		m.Role = event.Tool
	}
	if kind == "assistant" {
		m.Provider, m.Model, m.Group = "anthropic", message.PeekText("model"), message.PeekText("id")
		for _, call := range m.ToolCalls() {
			s.reader.Names[call.CallID] = call.Name
		}
		s.setUsage(&m, &message)
	}
	for _, name := range []string{"role", "type", "model"} {
		message.Take(name)
	}
	o.Take("message")
	o.Put("message", message.Rest())
	m.Extra = o.Rest()
	s.message(rec, m, 0, false)
}

// setUsage sets the usage of the first line of an answer: the others repeat it.
func (s *session) setUsage(m *event.Message, message *parts.Members) {
	m.ResponseID, m.StopReason = m.Group, message.PeekText("stop_reason")
	if s.responses[m.Group] {
		return
	}
	s.responses[m.Group] = true
	m.Usage, _ = parts.Usage(message.Peek("usage"))
	s.totals.Model = m.Model
}

// addTotals takes the sums of a result. They grow with each result of a run.
func (s *session) addTotals(rec *records.Record) {
	var result struct {
		Cost float64 `json:"total_cost_usd"`
	}
	o, err := parts.Open(rec.Value)
	if err != nil || json.Unmarshal(rec.Value, &result) != nil {
		return
	}
	if cost, err := event.USD(max(0, result.Cost)); err == nil {
		s.totals.Cost = max(s.totals.Cost, cost)
	}
	u, ok := parts.Usage(o.Peek("usage"))
	u.Extra = nil
	if ok && u.OutputTokens >= s.totals.Usage.OutputTokens {
		s.totals.Usage = u
	}
}
