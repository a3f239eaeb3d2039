package adk

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/convlog/convlog/event"
)

// eventType is the type of an ADK event without content: data is its JSON.
const eventType event.Type = "adk:event"

// encode makes the events of the log for an ADK event: the event itself, and a patch if it changes the state of the session.
func (b bodies) encode(ctx context.Context, logID string, e *session.Event) ([]event.Event, error) {
	e = withoutTemp(e)
	own, err := b.encodeOwn(ctx, e)
	if err != nil {
		return nil, err
	}
	events := []event.Event{own}
	if _, _, delta := split(e.Actions.StateDelta); len(delta) > 0 {
		patch, err := setMembers(delta)
		if err != nil {
			return nil, err
		}
		events = append(events, event.New(patch))
	}
	for i := range events {
		if e.ID != "" {
			events[i].ID = idOf(logID, e, i)
		}
		events[i].Timestamp = e.Timestamp.UTC()
	}
	return events, nil
}

func (b bodies) encodeOwn(ctx context.Context, e *session.Event) (event.Event, error) {
	rest := *e
	parts, err := b.encodeContent(ctx, e.Content)
	if err != nil {
		return event.Event{}, err
	}
	if parts != nil {
		rest.Content = &genai.Content{Role: e.Content.Role}
	}
	extra, err := extraOf(rest)
	if err != nil {
		return event.Event{}, err
	}
	usage := usageOf(e.UsageMetadata)
	switch {
	case parts != nil:
		m := event.Message{Role: roleOf(e), Parts: parts, Usage: usage, StopReason: valid(string(e.FinishReason)), Extra: extra}
		m.Model, m.Provider = modelOf(e)
		return event.New(m), nil
	case !usage.IsZero():
		s := event.StepCompletion{Agent: valid(e.Author), Usage: usage, StopReason: valid(string(e.FinishReason)), Error: valid(e.ErrorMessage), Extra: extra}
		s.Model, s.Provider = modelOf(e)
		return event.New(s), nil
	default:
		return event.Event{ID: event.NewID(), Type: eventType, Data: extra}, nil
	}
}

// encodeContent returns nil for a content that is no message.
func (b bodies) encodeContent(ctx context.Context, c *genai.Content) ([]event.Part, error) {
	if c == nil || len(c.Parts) == 0 || slices.Contains(c.Parts, nil) {
		return nil, nil
	}
	parts := make([]event.Part, len(c.Parts))
	for i, p := range c.Parts {
		var err error
		if parts[i], err = b.encodePart(ctx, p); err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
	}
	return parts, nil
}

// roleOf is the role of the message: a content with function responses only is a message of the tool.
func roleOf(e *session.Event) event.Role {
	answers := func(p *genai.Part) bool { return p.FunctionResponse != nil && p.FunctionResponse.ID != "" }
	speaks := func(p *genai.Part) bool { return !answers(p) }
	switch {
	case !slices.ContainsFunc(e.Content.Parts, speaks):
		return event.Tool
	case e.Content.Role == genai.RoleUser || e.Content.Role == "" && e.Author == genai.RoleUser:
		return event.User
	default:
		return event.Assistant
	}
}

func modelOf(e *session.Event) (model, provider string) {
	if strings.HasPrefix(e.ModelVersion, "gemini") {
		provider = "google"
	}
	return valid(e.ModelVersion), provider
}

// usageOf counts the tokens. The prompt of Gemini includes the cached tokens, and its candidates exclude the thoughts.
func usageOf(u *genai.GenerateContentResponseUsageMetadata) event.Usage {
	if u == nil {
		return event.Usage{}
	}
	cached := min(u.CachedContentTokenCount, u.PromptTokenCount)
	return event.Usage{
		InputTokens:     int64(max(u.PromptTokenCount-cached+u.ToolUsePromptTokenCount, 0)),
		OutputTokens:    int64(max(u.CandidatesTokenCount+u.ThoughtsTokenCount, 0)),
		CacheReadTokens: int64(max(cached, 0)), ReasoningTokens: int64(max(u.ThoughtsTokenCount, 0)),
	}
}

// idOf is the id of the n-th event of an ADK event: the same one whenever it is appended.
func idOf(logID string, e *session.Event, n int) (id ulid.ULID) {
	sum := sha256.Sum256([]byte(strings.Join([]string{"adk id 1", logID, e.ID, strconv.Itoa(n)}, "\x00")))
	if ms := e.Timestamp.UnixMilli(); ms > 0 {
		_ = id.SetTime(min(uint64(ms), ulid.MaxTime())) // it fails for a later time only
	}
	_ = id.SetEntropy(sum[:10]) // it fails for another length only
	return id
}

// decode returns the ADK event of an event of the log. ok is false if it has none.
func (b bodies) decode(ctx context.Context, e *event.Event) (out *session.Event, ok bool, err error) {
	switch e.Type.Name() {
	case event.MessageAdded:
		out, err = b.decodeMessage(ctx, e)
		return out, err == nil, err
	case event.StepCompleted, eventType:
		if e.Redacted() {
			return nil, false, nil
		}
		extra := e.Data
		if e.Type != eventType {
			s, _, err := event.Decode[event.StepCompletion](e)
			if err != nil {
				return nil, false, err
			}
			extra = s.Extra
		}
		raw, ok := memberOf(extra)
		if !ok {
			return nil, false, nil
		}
		out = new(session.Event)
		err = json.Unmarshal(raw, out)
		return out, err == nil, err
	default:
		return nil, false, nil
	}
}

func (b bodies) decodeMessage(ctx context.Context, e *event.Event) (*session.Event, error) {
	if e.Redacted() {
		return decodeRedacted(e)
	}
	m, _, err := event.Decode[event.Message](e)
	if err != nil {
		return nil, err
	}
	out := new(session.Event)
	if raw, ok := memberOf(m.Extra); ok {
		err = json.Unmarshal(raw, out)
	} else {
		out = foreign(e, m.Role)
	}
	if err != nil || out.Content == nil {
		return out, err
	}
	for i := range m.Parts {
		p, err := b.decodePart(ctx, &m.Parts[i])
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		out.Content.Parts = append(out.Content.Parts, p)
	}
	return out, nil
}

// foreign is the ADK event of a message that another writer appended, without its parts.
func foreign(e *event.Event, role event.Role) *session.Event {
	out := &session.Event{ID: e.ID.String(), Timestamp: e.Timestamp, InvocationID: e.ID.String(), Author: genai.RoleUser}
	out.Content = &genai.Content{Role: genai.RoleUser}
	switch role {
	case event.Assistant:
		out.Author, out.Content.Role = unknownAuthor, genai.RoleModel
	case event.Tool:
		out.Author = unknownAuthor
	}
	return out
}

// unknownAuthor is the author of a message whose agent is not known, until nameAuthors.
const unknownAuthor = "\x00"

// nameAuthors replaces unknown authors by the agent of the nearest event before or, if there is none, after it; or else by the app.
func nameAuthors(app string, events []*session.Event) {
	known := func(e *session.Event) bool {
		return e.Author != unknownAuthor && e.Author != genai.RoleUser && e.Author != ""
	}
	author := app
	if i := slices.IndexFunc(events, known); i >= 0 {
		author = events[i].Author
	}
	for _, e := range events {
		if known(e) {
			author = e.Author
		} else if e.Author == unknownAuthor {
			e.Author = author
		}
	}
}

// erased is the text in the place of redacted content.
const erased = "[redacted]"

// decodeRedacted keeps the calls and results of a redacted message, so that each call has its result.
func decodeRedacted(e *event.Event) (*session.Event, error) {
	o, _, err := event.OutlineOf(e)
	if err != nil {
		return nil, err
	}
	out := foreign(e, o.Role)
	for _, call := range o.Calls {
		out.Content.Parts = append(out.Content.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: call.ID, Name: "redacted"}})
	}
	for _, id := range o.Results {
		answer := map[string]any{"output": erased}
		out.Content.Parts = append(out.Content.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "redacted", Response: answer}})
	}
	if out.Content.Parts == nil {
		out.Content.Parts = []*genai.Part{{Text: erased}}
	}
	return out, nil
}

// split sorts a change of the state by its owners, without the prefixes of app and user.
func split(delta map[string]any) (app, user, own map[string]any) {
	app, user, own = map[string]any{}, map[string]any{}, map[string]any{}
	for key, value := range delta {
		if name, ok := strings.CutPrefix(key, session.KeyPrefixApp); ok {
			app[name] = value
		} else if name, ok := strings.CutPrefix(key, session.KeyPrefixUser); ok {
			user[name] = value
		} else if !strings.HasPrefix(key, session.KeyPrefixTemp) {
			own[key] = value
		}
	}
	return app, user, own
}

// operation is an operation of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"` // of a remove it means nothing
}

// setMembers is a patch that sets members of the state.
func setMembers(values map[string]any) (event.CustomPatch, error) {
	var ops []operation
	for _, key := range slices.Sorted(maps.Keys(values)) {
		ops = append(ops, operation{"add", "/" + pointer.Replace(valid(key)), values[key]})
	}
	return patchOf(ops...)
}

// emptyState is the operation that begins the state.
const emptyState = `{"op":"add","path":"","value":{}}`

// beginState returns the events of encode for a blank session: their patch begins the state.
func beginState(events []event.Event) ([]event.Event, error) {
	if len(events) == 1 {
		return events, nil
	}
	p, _, err := event.Decode[event.CustomPatch](&events[1])
	if err != nil {
		return nil, err
	}
	p.Patch = slices.Concat(jsontext.Value("["+emptyState+","), p.Patch[1:])
	patch := event.New(p)
	patch.ID, patch.Timestamp = events[1].ID, events[1].Timestamp
	return []event.Event{events[0], patch}, nil
}

func patchOf(ops ...operation) (event.CustomPatch, error) {
	raw, err := marshal(ops)
	return event.CustomPatch{Name: member, Patch: jsontext.Value(raw)}, err
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")
