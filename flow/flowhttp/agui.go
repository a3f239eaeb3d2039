package flowhttp

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/projection"
)

// AG-UI (npm package @ag-ui/client) has events that build several messages, and an event that
// replaces all of them. A run begins with the messages before the turn and ends with all
// messages, so a client that reconnects has none twice.

// agEvent is an event of AG-UI. The type decides which members count.
type agEvent struct {
	Type            string         `json:"type"`
	ThreadID        string         `json:"threadId,omitzero"`
	RunID           string         `json:"runId,omitzero"`
	MessageID       string         `json:"messageId,omitzero"`
	ParentMessageID string         `json:"parentMessageId,omitzero"`
	Role            string         `json:"role,omitzero"`
	Delta           any            `json:"delta,omitzero"`
	ToolCallID      string         `json:"toolCallId,omitzero"`
	ToolCallName    string         `json:"toolCallName,omitzero"`
	Content         *string        `json:"content,omitzero"`
	Messages        []agMessage    `json:"messages,omitzero"`
	Snapshot        jsontext.Value `json:"snapshot,omitzero"`
	Outcome         *agOutcome     `json:"outcome,omitzero"`
	Message         string         `json:"message,omitzero"`
	Code            string         `json:"code,omitzero"`
}

type agOutcome struct {
	Type       string        `json:"type"`
	Interrupts []agInterrupt `json:"interrupts,omitzero"`
}

type agInterrupt struct {
	ID             string         `json:"id"`
	Reason         string         `json:"reason"`
	Message        string         `json:"message,omitzero"`
	ToolCallID     string         `json:"toolCallId,omitzero"`
	ExpiresAt      time.Time      `json:"expiresAt,omitzero"`
	ResponseSchema jsontext.Value `json:"responseSchema,omitzero"`
	Metadata       map[string]any `json:"metadata,omitzero"`
}

// agMessage is a message of AG-UI. The role decides which members count.
type agMessage struct {
	ID         string   `json:"id"`
	Role       string   `json:"role"`
	Content    any      `json:"content,omitzero"`
	ToolCalls  []agCall `json:"toolCalls,omitzero"`
	ToolCallID string   `json:"toolCallId,omitzero"`
	Error      string   `json:"error,omitzero"`
}

type agCall struct {
	ID       string     `json:"id"`
	Type     string     `json:"type"`
	Function agFunction `json:"function"`
}

type agFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// agInput is the body that a client posts.
type agInput struct {
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
	Messages []struct {
		ID      string         `json:"id"`
		Role    string         `json:"role"`
		Content jsontext.Value `json:"content"`
	} `json:"messages"`
	Resume []agResume `json:"resume"`
}

type agResume struct {
	InterruptID string `json:"interruptId"`
	Status      string `json:"status"`
	Payload     struct {
		Approved  *bool          `json:"approved"`
		Reason    string         `json:"reason"`
		Arguments jsontext.Value `json:"arguments"`
		Value     jsontext.Value `json:"value"`
	} `json:"payload"`
}

// answerSchema is what the payload of an answer looks like.
var answerSchema = jsontext.Value(`{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"},"arguments":{},"value":{}},"required":["approved"]}`)

func (x *agResume) answer() (answer, error) {
	a := answer{InterruptID: x.InterruptID, Decision: event.Denied, Reason: x.Payload.Reason}
	switch {
	case x.Status == "cancelled":
	case x.Payload.Approved == nil && x.Payload.Value == nil:
		return a, httpapi.NewProblem(http.StatusUnprocessableEntity, "the answer to "+x.InterruptID+" has no member approved", "see the responseSchema of the interrupt")
	case x.Payload.Value != nil:
		a.Decision, a.Value = event.Answered, x.Payload.Value
	case *x.Payload.Approved:
		a.Decision, a.Arguments = event.Approved, x.Payload.Arguments
	}
	return a, nil
}

func (h *handler) agUI(w http.ResponseWriter, r *http.Request) error {
	var body agInput
	if err := h.read(w, r, &body); err != nil {
		return err
	}
	by, err := h.authorize(r, body.ThreadID)
	if err != nil {
		return err
	}
	if body.ThreadID == "" || body.RunID == "" {
		return httpapi.NewProblem(http.StatusUnprocessableEntity, "the run has no threadId or no runId", "send both")
	}
	var find func(context.Context) (*segment, error)
	if len(body.Resume) > 0 {
		find, err = h.agAnswer(r.Context(), &body, by)
	} else {
		find, err = h.agInput(r.Context(), &body)
	}
	if err != nil {
		return err
	}
	stream, ctx := httpapi.NewStream(w, r)
	defer stream.End()
	enc := &agEncoder{ctx: ctx, h: h, run: body.RunID, session: body.ThreadID, send: func(e agEvent) bool {
		text, err := json.Marshal(e, json.Deterministic(true))
		return err == nil && stream.Send(httpapi.Frame{Data: text})
	}}
	if err := h.stream(ctx, body.ThreadID, find, enc); err != nil && ctx.Err() == nil {
		enc.send(agEvent{Type: "RUN_ERROR", Message: problemOf(err).Error()})
	}
	return nil
}

// agInput stores the newest message of a run.
func (h *handler) agInput(ctx context.Context, body *agInput) (func(context.Context) (*segment, error), error) {
	n := len(body.Messages) - 1
	if n < 0 || body.Messages[n].Role != "user" {
		return h.newest(ctx, body.ThreadID) // the client follows the newest turn again
	}
	last := &body.Messages[n]
	message := event.Message{Role: event.User}
	var text string
	var parts []agPart
	switch {
	case json.Unmarshal(last.Content, &text) == nil:
		message.Parts = []event.Part{event.Text(text)}
	case json.Unmarshal(last.Content, &parts) == nil:
		for i := range parts {
			p, err := parts[i].event()
			if err != nil {
				return nil, err
			}
			message.Parts = append(message.Parts, p)
		}
	default:
		return nil, httpapi.NewProblem(http.StatusUnprocessableEntity, "the content of the last message is neither text nor a list of parts", "send one of them")
	}
	_, id, err := h.send(ctx, body.ThreadID, flow.Input{ID: last.ID, Messages: []event.Message{message}})
	if err != nil {
		return nil, err
	}
	return h.after(body.ThreadID, id), nil
}

// agPart is a part of a message of the user.
type agPart struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Source struct {
		Type     string `json:"type"`
		Value    string `json:"value"`
		MimeType string `json:"mimeType"`
	} `json:"source"`
}

func (p *agPart) event() (event.Part, error) {
	if p.Type == "text" {
		return event.Text(p.Text), nil
	}
	u := uiPart{Type: "file", MediaType: p.Source.MimeType, URL: p.Source.Value}
	if p.Source.Type == "data" {
		u.URL = "data:" + p.Source.MimeType + ";base64," + p.Source.Value
	}
	m, err := (&uiMessage{Role: "user", Parts: []uiPart{u}}).event()
	if err != nil {
		return event.Part{}, err
	}
	return m.Parts[0], nil
}

func (h *handler) agAnswer(ctx context.Context, body *agInput, by string) (func(context.Context) (*segment, error), error) {
	answers := make([]answer, len(body.Resume))
	for i := range body.Resume {
		a, err := body.Resume[i].answer()
		if err != nil {
			return nil, err
		}
		answers[i] = a
	}
	s, err := h.find(ctx, body.ThreadID, "")
	if err != nil {
		return nil, err
	}
	if _, err := h.decide(ctx, body.ThreadID, by, answers); err != nil {
		return nil, err
	}
	return s.found, nil
}

// agEncoder encodes a segment as events of AG-UI. send reports whether the client reads.
type agEncoder struct {
	ctx     context.Context
	h       *handler
	session string
	run     string
	send    func(agEvent) bool
	growing growing
	ends    []agEvent // of the messages that are open
	void    ulid.ULID // the message whose pieces are void
}

func (x *agEncoder) put(events ...agEvent) error { return sendAll(x.send, events) }

func (x *agEncoder) begin(s *segment) error {
	before, err := x.h.agMessages(x.ctx, x.session, s.from-1)
	if err != nil {
		return err
	}
	custom, err := projection.Load(x.ctx, x.h.log, x.session, projection.Custom(), projection.Options{At: s.from - 1})
	if err != nil {
		return err
	}
	if err := x.put(agEvent{Type: "RUN_STARTED", ThreadID: x.session, RunID: x.run}, agEvent{Type: "MESSAGES_SNAPSHOT", Messages: before}); err != nil {
		return err
	}
	state := custom.State.Get(x.h.name).Raw()
	if state == nil || state.Kind() == 'n' {
		state = jsontext.Value("{}") // the client may have one of a stream that was cut
	}
	return x.put(agEvent{Type: "STATE_SNAPSHOT", Snapshot: state})
}

func reasoningID(message ulid.ULID, part int) string { return partID(message, part) + "-reasoning" }

func (x *agEncoder) delta(d *eventlog.Delta) error {
	fresh, ok, err := x.growing.add(d)
	if err != nil { // the messages at the end of the run replace the pieces
		x.growing.stopped, x.growing.texts, x.growing.attempt = true, nil, d.Attempt
		x.void = d.Message
		return x.close("")
	}
	if !ok {
		return nil
	}
	if d.Kind == event.ReasoningPart {
		return x.reasoning(d.Message, d.Part, fresh, d.Text, false)
	}
	return x.text(d.Message, d.Text)
}

// close ends the open messages. A message stays open if its id begins with keep.
func (x *agEncoder) close(keep string) error {
	var kept []agEvent
	for _, e := range x.ends {
		if keep != "" && strings.HasPrefix(e.MessageID, keep) {
			kept = append(kept, e)
		} else if err := x.put(e); err != nil {
			return err
		}
	}
	x.ends = kept
	return nil
}

// text adds text to the open message.
func (x *agEncoder) text(message ulid.ULID, text string) error {
	if text == "" {
		return nil
	}
	id := message.String()
	if !slices.ContainsFunc(x.ends, func(e agEvent) bool { return e.MessageID == id }) {
		if err := x.close(id); err != nil { // of a model call that was interrupted
			return err
		}
		x.ends = append(x.ends, agEvent{Type: "TEXT_MESSAGE_END", MessageID: id})
		if err := x.put(agEvent{Type: "TEXT_MESSAGE_START", MessageID: id, Role: "assistant"}); err != nil {
			return err
		}
	}
	return x.put(agEvent{Type: "TEXT_MESSAGE_CONTENT", MessageID: id, Delta: text})
}

func (x *agEncoder) reasoning(message ulid.ULID, part int, begin bool, text string, end bool) error {
	id := reasoningID(message, part)
	if begin {
		if err := x.close(message.String()); err != nil {
			return err
		}
		x.ends = append(x.ends, agEvent{Type: "REASONING_MESSAGE_END", MessageID: id}, agEvent{Type: "REASONING_END", MessageID: id})
		if err := x.put(agEvent{Type: "REASONING_START", MessageID: id}, agEvent{Type: "REASONING_MESSAGE_START", MessageID: id, Role: "reasoning"}); err != nil {
			return err
		}
	}
	if text != "" {
		if err := x.put(agEvent{Type: "REASONING_MESSAGE_CONTENT", MessageID: id, Delta: text}); err != nil {
			return err
		}
	}
	if end {
		x.ends = slices.DeleteFunc(x.ends, func(e agEvent) bool { return e.MessageID == id })
		return x.put(agEvent{Type: "REASONING_MESSAGE_END", MessageID: id}, agEvent{Type: "REASONING_END", MessageID: id})
	}
	return nil
}

func (x *agEncoder) message(id ulid.ULID, m *event.Message) error {
	if m.Role == event.Tool {
		for _, a := range agOf(id.String(), id, m) {
			content, _ := a.Content.(string)
			if err := x.put(agEvent{Type: "TOOL_CALL_RESULT", MessageID: a.ID, ToolCallID: a.ToolCallID, Content: &content, Role: "tool"}); err != nil {
				return err
			}
		}
		return nil
	}
	if m.Role != event.Assistant {
		return nil
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		rest, begun, err := x.growing.rest(id, i, p.Text)
		if err != nil || id == x.void {
			continue // the messages at the end of the run replace it
		}
		switch {
		case p.Type == event.ReasoningPart && (begun || p.Text != ""):
			err = x.reasoning(id, i, !begun, rest, true)
		case p.Type == event.TextPart:
			err = x.text(id, rest)
		}
		if err != nil {
			return err
		}
	}
	if err := x.close(""); err != nil {
		return err
	}
	for _, p := range m.ToolCalls() {
		if err := x.put(agEvent{Type: "TOOL_CALL_START", ToolCallID: p.CallID, ToolCallName: p.Name, ParentMessageID: id.String()},
			agEvent{Type: "TOOL_CALL_ARGS", ToolCallID: p.CallID, Delta: string(argumentsOf(&p))}, agEvent{Type: "TOOL_CALL_END", ToolCallID: p.CallID}); err != nil {
			return err
		}
	}
	return nil
}

func (x *agEncoder) review(*event.ApprovalRequest) error { return nil } // pause has the open ones

func (x *agEncoder) resolution(*event.ApprovalResolution) error { return nil }

func (x *agEncoder) patch(p *event.CustomPatch) error {
	return x.put(agEvent{Type: "STATE_DELTA", Delta: p.Patch})
}

// finish ends the run with all messages.
func (x *agEncoder) finish(o *agOutcome) error {
	all, err := x.h.agMessages(x.ctx, x.session, 0)
	if err != nil {
		return err
	}
	if err := x.close(""); err != nil {
		return err
	}
	return x.put(agEvent{Type: "MESSAGES_SNAPSHOT", Messages: all}, agEvent{Type: "RUN_FINISHED", ThreadID: x.session, RunID: x.run, Outcome: o})
}

func (x *agEncoder) pause(open []projection.OpenApproval) error {
	o := &agOutcome{Type: "interrupt"}
	for i := range open {
		a := &open[i]
		in := agInterrupt{ID: a.InterruptID, Reason: "review", Message: a.Prompt, ToolCallID: a.CallID, ExpiresAt: a.ExpiresAt, ResponseSchema: answerSchema, Metadata: map[string]any{"name": a.Name}}
		if a.Arguments != nil {
			in.Metadata["arguments"] = a.Arguments
		}
		o.Interrupts = append(o.Interrupts, in)
	}
	return x.finish(o)
}

func (x *agEncoder) next() error { return x.finish(&agOutcome{Type: "success"}) }

func (x *agEncoder) end(c *event.TurnCompletion) error {
	switch c.Status.Known() {
	case event.TurnStatusCompleted:
		return x.finish(&agOutcome{Type: "success"})
	case event.TurnStatusAborted:
		return x.finish(&agOutcome{Type: "cancelled"})
	}
	return x.put(agEvent{Type: "RUN_ERROR", Message: "the turn failed: " + c.Error, Code: c.Code})
}

// agMessages are the messages of a session through the event at; 0 is the newest.
func (h *handler) agMessages(ctx context.Context, session string, at int64) ([]agMessage, error) {
	all, last := []agMessage{}, ""
	for e, err := range h.log.Read(ctx, session, eventlog.All().OnPath()) {
		if err != nil {
			return nil, err
		}
		if at > 0 && e.Seq > at {
			break
		}
		if e.Type.Name() != event.MessageAdded || e.Redacted() {
			continue
		}
		m, _, err := event.Decode[event.Message](&e)
		if err != nil {
			return nil, err
		}
		id := e.ID.String()
		if m.Role == event.User && m.InputID != "" && m.InputID != last { // an input may have several messages
			id, last = m.InputID, m.InputID
		}
		all = append(all, agOf(id, e.ID, &m)...)
	}
	return all, nil
}

// agOf are the messages of an event.
func agOf(id string, message ulid.ULID, m *event.Message) (all []agMessage) {
	switch m.Role {
	case event.User:
		return []agMessage{{ID: id, Role: "user", Content: contentText(m.Parts)}}
	case event.Tool:
		for i := range m.Parts {
			p := &m.Parts[i]
			if p.Type != event.ToolResultPart {
				continue
			}
			text := contentText(p.Content)
			a := agMessage{ID: partID(message, i), Role: "tool", Content: text, ToolCallID: p.CallID}
			if p.IsError {
				a.Error = text
			}
			all = append(all, a)
		}
		return all
	case event.Assistant:
	default:
		return nil
	}
	out := agMessage{ID: id, Role: "assistant"}
	var text strings.Builder
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Type {
		case event.ReasoningPart:
			if p.Text != "" {
				all = append(all, agMessage{ID: reasoningID(message, i), Role: "reasoning", Content: p.Text})
			}
		case event.TextPart:
			text.WriteString(p.Text)
		case event.ToolCallPart:
			out.ToolCalls = append(out.ToolCalls, agCall{ID: p.CallID, Type: "function", Function: agFunction{Name: p.Name, Arguments: string(argumentsOf(p))}})
		}
	}
	if text.Len() > 0 {
		out.Content = text.String()
	}
	return append(all, out)
}
