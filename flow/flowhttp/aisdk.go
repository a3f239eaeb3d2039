package flowhttp

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/projection"
)

// The AI SDK (npm package ai) reads a stream of chunks, which build one message of parts.
// Its client reconnects without an id: then it gets the message from its start.

// uiChunk is a chunk of a UI message stream. The type decides which members count.
type uiChunk struct {
	Type         string         `json:"type"`
	ID           string         `json:"id,omitzero"`
	MessageID    string         `json:"messageId,omitzero"`
	Delta        *string        `json:"delta,omitzero"`
	ToolCallID   string         `json:"toolCallId,omitzero"`
	ToolName     string         `json:"toolName,omitzero"`
	Input        jsontext.Value `json:"input,omitzero"`
	Output       jsontext.Value `json:"output,omitzero"`
	ErrorText    string         `json:"errorText,omitzero"`
	ApprovalID   string         `json:"approvalId,omitzero"`
	URL          string         `json:"url,omitzero"`
	MediaType    string         `json:"mediaType,omitzero"`
	FinishReason string         `json:"finishReason,omitzero"`
	Reason       string         `json:"reason,omitzero"`
	Data         any            `json:"data,omitzero"`
	Transient    bool           `json:"transient,omitzero"`
}

// uiEncoder encodes a segment as a UI message stream. send reports whether the client reads.
type uiEncoder struct {
	send    func(uiChunk) bool
	growing growing
	inStep  bool
	calls   map[string]string // the calls of reviews
	denied  map[string]bool   // calls that a person denied
}

func (u *uiEncoder) put(chunks ...uiChunk) error { return sendAll(u.send, chunks) }

func (u *uiEncoder) begin(s *segment) error {
	u.denied = map[string]bool{}
	if u.calls == nil {
		u.calls = map[string]string{}
	}
	return u.put(uiChunk{Type: "start", MessageID: s.id})
}

func partID(message ulid.ULID, part int) string { return message.String() + "-" + strconv.Itoa(part) }

// step begins a step if none is open.
func (u *uiEncoder) step() error {
	if u.inStep {
		return nil
	}
	u.inStep = true
	return u.put(uiChunk{Type: "start-step"})
}

func (u *uiEncoder) endStep() error {
	if !u.inStep {
		return nil
	}
	u.inStep = false
	return u.put(uiChunk{Type: "finish-step"})
}

func (u *uiEncoder) delta(d *eventlog.Delta) error {
	first := d.Message != u.growing.message
	fresh, ok, err := u.growing.add(d)
	if err != nil || !ok {
		return err
	}
	if first {
		if err := u.endStep(); err != nil {
			return err
		}
	}
	if err := u.step(); err != nil {
		return err
	}
	kind, id := string(d.Kind), partID(d.Message, d.Part)
	if fresh {
		if err := u.put(uiChunk{Type: kind + "-start", ID: id}); err != nil {
			return err
		}
	}
	return u.put(uiChunk{Type: kind + "-delta", ID: id, Delta: &d.Text})
}

func (u *uiEncoder) message(id ulid.ULID, m *event.Message) error {
	switch m.Role {
	case event.Assistant:
		if id != u.growing.message || len(u.growing.texts) == 0 {
			if err := u.endStep(); err != nil {
				return err
			}
		}
		if err := u.step(); err != nil {
			return err
		}
	case event.Tool:
	default:
		return nil // a system prompt
	}
	for i := range m.Parts {
		if err := u.part(id, i, &m.Parts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (u *uiEncoder) part(message ulid.ULID, n int, p *event.Part) error {
	switch p.Type {
	case event.TextPart, event.ReasoningPart:
		rest, begun, err := u.growing.rest(message, n, p.Text)
		if err != nil {
			return err
		}
		kind, id := string(p.Type), partID(message, n)
		if !begun {
			if p.Text == "" {
				return nil // reasoning that the provider withholds
			}
			if err := u.put(uiChunk{Type: kind + "-start", ID: id}); err != nil {
				return err
			}
		}
		if rest != "" {
			if err := u.put(uiChunk{Type: kind + "-delta", ID: id, Delta: &rest}); err != nil {
				return err
			}
		}
		return u.put(uiChunk{Type: kind + "-end", ID: id})
	case event.ToolCallPart:
		return u.put(uiChunk{Type: "tool-input-available", ToolCallID: p.CallID, ToolName: p.Name, Input: argumentsOf(p)})
	case event.ToolResultPart:
		return u.result(p)
	case event.ImagePart, event.AudioPart, event.DocumentPart:
		if url := fileURL(p); url != "" {
			return u.put(uiChunk{Type: "file", URL: url, MediaType: p.MediaType})
		}
	}
	return nil
}

func (u *uiEncoder) result(p *event.Part) error {
	switch {
	case u.denied[p.CallID]:
		return u.put(uiChunk{Type: "tool-output-denied", ToolCallID: p.CallID})
	case p.IsError:
		text := contentText(p.Content)
		if p.Interrupted && text == "" {
			text = "interrupted"
		}
		return u.put(uiChunk{Type: "tool-output-error", ToolCallID: p.CallID, ErrorText: text})
	}
	return u.put(uiChunk{Type: "tool-output-available", ToolCallID: p.CallID, Output: outputOf(p.Content)})
}

func (u *uiEncoder) review(q *event.ApprovalRequest) error {
	if q.CallID == "" {
		return u.put(uiChunk{Type: "data-review", ID: q.InterruptID, Data: map[string]any{"interrupt_id": q.InterruptID, "name": q.Name, "prompt": q.Prompt, "arguments": q.Arguments}})
	}
	u.calls[q.InterruptID] = q.CallID
	return u.put(uiChunk{Type: "tool-approval-request", ApprovalID: q.InterruptID, ToolCallID: q.CallID})
}

func (u *uiEncoder) resolution(a *event.ApprovalResolution) error {
	if call, ok := u.calls[a.InterruptID]; ok && a.Decision.Known() == event.Denied {
		u.denied[call] = true
	}
	return nil
}

func (u *uiEncoder) patch(*event.CustomPatch) error { return nil }

func (u *uiEncoder) finish(reason string) error {
	if err := u.endStep(); err != nil {
		return err
	}
	return u.put(uiChunk{Type: "finish", FinishReason: reason})
}

// pause gives the client the reviews of children too, which no message of this session has.
func (u *uiEncoder) pause(open []projection.OpenApproval) error {
	for i := range open {
		a := &open[i]
		if a.SessionID == "" {
			continue
		}
		data := map[string]any{"interrupt_id": a.InterruptID, "name": a.Name, "prompt": a.Prompt, "arguments": a.Arguments, "child_session": a.SessionID}
		if err := u.put(uiChunk{Type: "data-review", ID: a.InterruptID, Data: data, Transient: true}); err != nil {
			return err
		}
	}
	return u.finish("tool-calls")
}

func (u *uiEncoder) next() error { return u.finish("other") }

func (u *uiEncoder) end(c *event.TurnCompletion) error {
	switch c.Status.Known() {
	case event.TurnStatusCompleted:
		return u.finish("stop")
	case event.TurnStatusAborted:
		if err := u.endStep(); err != nil {
			return err
		}
		return u.put(uiChunk{Type: "abort", Reason: c.StopReason})
	}
	return u.put(uiChunk{Type: "error", ErrorText: "the turn failed: " + c.Error})
}

func argumentsOf(p *event.Part) jsontext.Value {
	if len(p.Arguments) == 0 {
		return jsontext.Value("{}")
	}
	return p.Arguments
}

// contentText is the text of the parts of a result.
func contentText(parts []event.Part) string {
	var b strings.Builder
	for i := range parts {
		b.WriteString(parts[i].Text)
	}
	return b.String()
}

// outputOf is a result as a JSON value: its text, its JSON, or its parts.
func outputOf(parts []event.Part) jsontext.Value {
	for i := range parts {
		if parts[i].Type != event.TextPart {
			if v, err := json.Marshal(parts, json.Deterministic(true)); err == nil {
				return v
			}
		}
	}
	text := contentText(parts)
	if v := jsontext.Value(text); len(text) > 0 && strings.ContainsRune("{[", rune(text[0])) && v.IsValid() {
		return v
	}
	v, err := jsontext.AppendQuote(nil, text)
	if err != nil { // not UTF-8
		v, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\uFFFD"))
	}
	return v
}

// fileURL is the address of a file, or its bytes; empty if the log keeps it apart.
func fileURL(p *event.Part) string {
	if len(p.Data) > 0 {
		return "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
	}
	return p.URL
}

// aiChat is the body that the client of the AI SDK posts.
type aiChat struct {
	ID       string      `json:"id"`
	Messages []uiMessage `json:"messages"`
	// Message is sent instead of Messages by a client that sends the last one only.
	Message *uiMessage `json:"message"`
}

func (h *handler) aiSDK(w http.ResponseWriter, r *http.Request) error {
	var body aiChat
	if err := h.read(w, r, &body); err != nil {
		return err
	}
	by, err := h.authorize(r, body.ID)
	if err != nil {
		return err
	}
	if body.Message == nil && len(body.Messages) > 0 {
		body.Message = &body.Messages[len(body.Messages)-1]
	}
	if body.ID == "" || body.Message == nil {
		return httpapi.NewProblem(http.StatusUnprocessableEntity, "the chat has no id or no message", "send both")
	}
	if body.Message.Role == "assistant" {
		return h.aiSDKAnswer(w, r, &body, by)
	}
	message, err := body.Message.event()
	if err != nil {
		return err
	}
	_, id, err := h.send(r.Context(), body.ID, flow.Input{ID: body.Message.ID, Messages: []event.Message{message}})
	if err != nil {
		return err
	}
	return h.streamUI(w, r, body.ID, h.after(body.ID, id), nil)
}

// aiSDKAnswer records the approvals of a message, and streams what the message lacks.
func (h *handler) aiSDKAnswer(w http.ResponseWriter, r *http.Request, body *aiChat, by string) error {
	var answers []answer
	for i := range body.Message.Parts {
		p := &body.Message.Parts[i]
		if p.State != "approval-responded" || p.Approval == nil || p.Approval.Approved == nil {
			continue
		}
		a := answer{InterruptID: p.Approval.ID, Decision: event.Denied, Reason: p.Approval.Reason}
		if *p.Approval.Approved {
			a.Decision = event.Approved
		}
		answers = append(answers, a)
	}
	if len(answers) == 0 {
		return httpapi.NewProblem(http.StatusUnprocessableEntity, "the last message is the assistant's, and has no answer to a review", "send a message of the user, or answer a review")
	}
	s, err := h.find(r.Context(), body.ID, "")
	if err != nil {
		return err
	}
	if s.from, err = h.decide(r.Context(), body.ID, by, answers); err != nil {
		return err
	}
	calls, err := h.reviewedCalls(r.Context(), body.ID, s.from-1)
	if err != nil {
		return err
	}
	return h.streamUI(w, r, body.ID, s.found, calls)
}

// reviewedCalls are the calls of the reviews in a turn, through the event at.
func (h *handler) reviewedCalls(ctx context.Context, session string, at int64) (map[string]string, error) {
	calls := map[string]string{}
	for e, err := range h.log.Read(ctx, session, eventlog.Between(0, at).Backward()) {
		if err != nil {
			return nil, err
		}
		if e.Type.Name() == event.TurnStarted {
			break
		}
		if e.Redacted() {
			continue
		}
		q, ok, err := event.Decode[event.ApprovalRequest](&e)
		if err != nil {
			return nil, err
		}
		if ok && q.CallID != "" {
			calls[q.InterruptID] = q.CallID
		}
	}
	return calls, nil
}

func (h *handler) aiSDKStream(w http.ResponseWriter, r *http.Request) error {
	session := r.PathValue("session")
	if _, err := h.authorize(r, session); err != nil {
		return err
	}
	find, err := h.newest(r.Context(), session)
	var p *httpapi.Problem
	if errors.Is(err, eventlog.ErrNotFound) || errors.As(err, &p) && p.Status == http.StatusNotFound {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err != nil {
		return err
	}
	return h.streamUI(w, r, session, find, nil)
}

// streamUI streams a segment to the AI SDK. calls are the calls of the reviews before it.
func (h *handler) streamUI(w http.ResponseWriter, r *http.Request, session string, find func(context.Context) (*segment, error), calls map[string]string) error {
	w.Header().Set("X-Vercel-AI-UI-Message-Stream", "v1")
	stream, ctx := httpapi.NewStream(w, r)
	defer stream.End()
	send := func(c uiChunk) bool {
		text, err := json.Marshal(c)
		return err == nil && stream.Send(httpapi.Frame{Data: text})
	}
	err := h.stream(ctx, session, find, &uiEncoder{send: send, calls: calls})
	if err != nil && ctx.Err() == nil {
		send(uiChunk{Type: "error", ErrorText: problemOf(err).Error()})
	}
	stream.Send(httpapi.Frame{Data: []byte("[DONE]")})
	return nil
}

func (h *handler) aiSDKMessages(w http.ResponseWriter, r *http.Request) error {
	session := r.PathValue("session")
	if _, err := h.authorize(r, session); err != nil {
		return err
	}
	all, err := h.uiMessages(r.Context(), session)
	if errors.Is(err, eventlog.ErrNotFound) {
		all, err = []uiMessage{}, nil
	}
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusOK, map[string]any{"id": session, "messages": all})
	return nil
}
