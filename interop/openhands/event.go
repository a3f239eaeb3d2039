package openhands

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// builder turns events into items.
type builder struct {
	model string
	// single is true if each event is a value of its own: the builder does not see
	// earlier events.
	single bool
	usages map[string]event.Usage // by response id
	items  []document.Item
	// responses are the ids of responses with an item. calls are the calls without a
	// result, by action id and by call id.
	responses map[string]bool
	calls     map[string]call
	cost      event.Cost // of all responses so far
	// stats is the newest sum of tokens and cost in a state.
	stats document.Totals
}

// call is the call of an action.
type call struct{ id, name string }

// addAll adds the items of events. Older versions pair each action with its observation.
func (b *builder) addAll(events []records.Record) error {
	for i := range events {
		rec := &events[i]
		if rec.Value.Kind() == '[' {
			pair, err := document.Elements(rec, rec.Value)
			if err != nil {
				return err
			}
			if err := b.addAll(pair); err != nil {
				return err
			}
			continue
		}
		b.addEvent(rec)
	}
	return nil
}

// step is an action or an observation.
type step struct {
	ID          jsontext.Value `json:"id"`
	Timestamp   string         `json:"timestamp"`
	Source      string         `json:"source"`
	Action      string         `json:"action"`
	Observation string         `json:"observation"`
	Content     string         `json:"content"`
	Cause       jsontext.Value `json:"cause"`
	Success     *bool          `json:"success"`
	Extras      struct {
		ExitCode jsontext.Value `json:"exit_code"`
		Metadata struct {
			ExitCode jsontext.Value `json:"exit_code"`
		} `json:"metadata"`
	} `json:"extras"`
	Args struct {
		Content   string   `json:"content"`
		Thought   string   `json:"thought"`
		Reasoning string   `json:"reasoning_content"`
		Images    []string `json:"image_urls"`
	} `json:"args"`
	Called struct {
		Name     string   `json:"function_name"`
		ID       string   `json:"tool_call_id"`
		Response response `json:"model_response"`
	} `json:"tool_call_metadata"`
	Metrics struct {
		Cost float64 `json:"accumulated_cost"`
	} `json:"llm_metrics"`
}

// addEvent adds the item of an event.
func (b *builder) addEvent(rec *records.Record) {
	var e step
	if o, err := parts.Open(rec.Value); err == nil && o.PeekText("kind") != "" {
		b.items = append(b.items, b.sdkItem(rec, &o))
		return
	}
	if rec.Value.Kind() != '{' || json.Unmarshal(rec.Value, &e) != nil {
		b.items = append(b.items, document.Raw(*rec, "event"))
		return
	}
	it := document.Item{Rec: *rec, At: document.Time(e.Timestamp), Kind: e.Action}
	if e.Observation != "" {
		it.Kind = e.Observation
	}
	if len(e.ID) > 0 && e.ID.Kind() == '0' {
		it.Name = "event " + string(e.ID)
	}
	if m, ok := b.message(&e, &it); ok {
		m.Extra = extra(rec.Value, &e, m.Role)
		it.Partial = e.Called.ID != "" // other events repeat the response, too
		it.Payload = m
	} else if e.Action == "condensation" && it.Name != "" {
		setCondensation(&it, rec)
	}
	b.items = append(b.items, it)
}

// message converts an event; ok is false if it is not a message.
func (b *builder) message(e *step, it *document.Item) (m event.Message, ok bool) {
	switch {
	case e.Observation != "":
		return b.resultMessage(e, it.Rec.Value)
	case e.Action == "system":
		return event.Message{Role: event.System, Parts: e.contentParts()}, true
	case e.Action == "message" && e.Source == "user":
		return event.Message{Role: event.User, Parts: e.contentParts()}, true
	case e.Source == "agent" && isModelAction(e.Action):
		return b.agentMessage(e, it), true
	case e.Action == "" && e.Cause != nil:
		return event.Message{Role: event.Tool, Parts: []event.Part{event.Opaque("observation", it.Rec.Value)}}, true
	}
	return m, false
}

// isModelAction reports whether the model chose the action. Other actions are
// bookkeeping.
func isModelAction(action string) bool {
	switch action {
	case "", "null", "recall", "change_agent_state", "condensation", "condensation_request", "pause", "resume", "stop":
		return false
	}
	return true
}

// contentParts are the text and images of a message.
func (e *step) contentParts() (all []event.Part) {
	if e.Args.Content != "" {
		all = append(all, event.Text(e.Args.Content))
	}
	for _, address := range e.Args.Images {
		v, err := json.Marshal(map[string]any{"type": "image_url", "image_url": map[string]string{"url": address}})
		if err == nil {
			p, _ := (&parts.Reader{}).Block(v) // a Reader without Put returns no error
			all = append(all, p)
		}
	}
	return all
}

// agentMessage converts an action of the agent.
func (b *builder) agentMessage(e *step, it *document.Item) event.Message {
	r := &e.Called.Response
	m := event.Message{Role: event.Assistant, Model: r.Model, Group: r.ID, ResponseID: r.ID, StopReason: r.stop()}
	if m.Model == "" {
		m.Model = b.model
	}
	if b.isFirstOfResponse(e) {
		b.responses[r.ID] = true
		m.Parts = b.responseParts(e)
		m.Usage = r.usage(b.usages)
		it.Cost = b.responseCost(e)
	}
	switch {
	case e.Called.ID != "":
		c := call{e.Called.ID, e.Called.Name}
		b.calls[c.id], b.calls[string(e.ID)] = c, c
		m.Parts = append(m.Parts, event.ToolCall(c.id, c.name, r.arguments(c.id)))
	case e.Action != "message":
		c := call{fmt.Sprintf("action_%s", e.ID), e.Action}
		b.calls[string(e.ID)] = c
		m.Parts = append(m.Parts, event.ToolCall(c.id, c.name, arguments(it.Rec.Value)))
	}
	return m
}

// isFirstOfResponse reports whether an event is the first of its response.
func (b *builder) isFirstOfResponse(e *step) bool {
	r := &e.Called.Response
	if r.ID == "" || !b.single {
		return !b.responses[r.ID] || r.ID == ""
	}
	first := r.firstCall()
	return first == "" || first == e.Called.ID
}

// responseParts are the reasoning and text of a response.
func (b *builder) responseParts(e *step) (all []event.Part) {
	r := &e.Called.Response
	for _, text := range []string{r.reasoning(), e.Args.Reasoning} {
		if text != "" {
			all = append(all, event.Reasoning(text, ""))
			break
		}
	}
	if e.Action == "message" {
		return append(all, e.contentParts()...)
	}
	text := r.text()
	if text == "" && (e.Called.ID == "" || e.Action != "think") {
		text = e.Args.Thought
	}
	if text != "" {
		all = append(all, event.Text(text))
	}
	return all
}

// responseCost is the cost of an event's response: the new sum less the sum so far.
func (b *builder) responseCost(e *step) event.Cost {
	sum, err := event.USD(max(0, e.Metrics.Cost))
	if err != nil || sum <= b.cost {
		return 0
	}
	if b.single {
		b.stats.Cost = sum // the log has the costs before it
		return 0
	}
	one := sum - b.cost
	b.cost = sum
	return one
}

// resultMessage converts an observation; ok is false if it has no call.
func (b *builder) resultMessage(e *step, value jsontext.Value) (m event.Message, ok bool) {
	c, ok := b.calls[e.Called.ID]
	if !ok && b.single && e.Called.ID != "" {
		c, ok = call{e.Called.ID, e.Called.Name}, true
	}
	if !ok {
		if c, ok = b.calls[string(e.Cause)]; len(e.Cause) == 0 && e.Content != "" && e.Source == "agent" {
			return event.Message{Role: event.Tool, Parts: []event.Part{event.Opaque("observation", value)}}, true
		} else if !ok || len(e.Cause) == 0 {
			return m, false
		}
	}
	var content []event.Part
	if e.Content != "" {
		content = []event.Part{event.Text(e.Content)}
	}
	p := event.ToolResult(c.id, c.name, content...)
	p.IsError = e.Observation == "error" || e.Success != nil && !*e.Success ||
		isFailure(e.Extras.ExitCode) || isFailure(e.Extras.Metadata.ExitCode)
	return event.Message{Role: event.Tool, Parts: []event.Part{p}}, true
}

// isFailure reports whether a value is the exit code of a command that failed. -1 says that
// the command still runs.
func isFailure(code jsontext.Value) bool {
	return code.Kind() == '0' && string(code) != "0" && string(code) != "-1"
}
