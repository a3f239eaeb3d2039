package genkit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/firebase/genkit/go/ai"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// inlineBody is the size of the bodies that are stored in the event; larger ones are blobs.
const inlineBody = 16 << 10

// encoder encodes the messages of one state. Requests without a reference get one from their place.
type encoder struct {
	unnamed map[string][]string     // the open calls without a reference, by the name of the tool
	bodies  map[event.Digest][]byte // the bodies of the blobs; putBlobs stores them
}

// decoder decodes stored messages.
type decoder struct{ log *eventlog.Log }

// hasBlobs reports whether a message has a body that may be a blob.
func hasBlobs(messages []*ai.Message) bool {
	return slices.ContainsFunc(messages, func(m *ai.Message) bool {
		return m != nil && slices.ContainsFunc(m.Content, func(p *ai.Part) bool { return p.IsMedia() && len(p.Text) > inlineBody })
	})
}

// messageExtra are the members of a message without a place in the log.
type messageExtra struct {
	Role     *ai.Role       `json:"role,omitempty"` // nil if genkitRole returns it
	Metadata map[string]any `json:"metadata,omitempty"`
}

// partExtra are the members of a part without a place in the log.
type partExtra struct {
	Metadata    map[string]any `json:"metadata,omitempty"`
	ContentType *string        `json:"content_type,omitempty"`
	NoRef       bool           `json:"no_ref,omitempty"`
	Partial     bool           `json:"partial,omitempty"`
	Content     []*ai.Part     `json:"content,omitempty"`
}

func (c *encoder) encode(messages []*ai.Message) ([]event.Message, error) {
	all := make([]event.Message, len(messages))
	for i, m := range messages {
		if m == nil {
			return nil, fmt.Errorf("message %d is nil", i)
		}
		out := event.Message{Role: roleOf(m)}
		for j, p := range m.Content {
			part, err := c.encodePart(p, fmt.Sprintf("genkit-%d-%d", i, j))
			if err != nil {
				return nil, fmt.Errorf("message %d, part %d: %w", i, j, err)
			}
			out.Parts = append(out.Parts, part)
		}
		rest := messageExtra{Metadata: m.Metadata}
		if m.Role != genkitRole(out.Role) {
			rest.Role = &m.Role
		}
		var err error
		if out.Extra, err = extraOf(rest); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		all[i] = out
	}
	return all, nil
}

func roleOf(m *ai.Message) event.Role {
	switch m.Role {
	case ai.RoleModel:
		return event.Assistant
	case ai.RoleTool:
		for _, p := range m.Content {
			if p.IsToolResponse() {
				return event.Tool
			}
		}
		return event.User
	case ai.RoleSystem:
		return event.System
	default:
		return event.User
	}
}

func (c *encoder) encodePart(p *ai.Part, place string) (out event.Part, err error) {
	rest := partExtra{}
	switch {
	case p.IsText() && p.Text != "":
		out = event.Text(valid(p.Text))
	case p.IsReasoning() && p.Text != "":
		out = event.Reasoning(valid(p.Text), "")
	case p.IsMedia() && p.Text != "":
		out = c.encodeMedia(p)
		if p.ContentType != out.MediaType {
			rest.ContentType = &p.ContentType
		}
	case p.IsToolRequest() && p.ToolRequest != nil && p.ToolRequest.Name != "":
		r := p.ToolRequest
		out = event.Part{Type: event.ToolCallPart, CallID: valid(r.Ref), Name: valid(r.Name)}
		rest.NoRef, rest.Partial = r.Ref == "", r.Partial
		if rest.NoRef {
			out.CallID = place
			c.unnamed[r.Name] = append(c.unnamed[r.Name], place)
		}
		if r.Input != nil {
			out.Arguments, err = marshal(r.Input)
		}
	case p.IsToolResponse() && p.ToolResponse != nil:
		r := p.ToolResponse
		out = event.ToolResult(valid(r.Ref), valid(r.Name))
		rest.NoRef, rest.Content = r.Ref == "", r.Content
		if rest.NoRef {
			out.CallID = c.callOf(r.Name, place)
		}
		if r.Output != nil {
			var raw jsontext.Value
			raw, err = marshal(r.Output)
			out.Content = []event.Part{event.Text(string(raw))}
		}
	default:
		raw, err := marshal(p)
		return event.Opaque(member, raw), err
	}
	if err != nil {
		return out, err
	}
	rest.Metadata = p.Metadata
	out.Extra, err = extraOf(rest)
	return out, err
}

// callOf is the id of the first open call of a tool without a reference.
func (c *encoder) callOf(tool, place string) string {
	open := c.unnamed[tool]
	if len(open) == 0 {
		return place
	}
	c.unnamed[tool] = open[1:]
	return open[0]
}

// encodeMedia decodes a data URL, and keeps any other URL.
func (c *encoder) encodeMedia(p *ai.Part) event.Part {
	out := event.Part{Type: event.DocumentPart, MediaType: valid(p.ContentType)}
	head, body, ok := strings.Cut(p.Text, ";base64,")
	mediaType, isData := strings.CutPrefix(head, "data:")
	data, err := base64.StdEncoding.DecodeString(body)
	switch decoded := ok && isData && err == nil && len(data) > 0 && base64.StdEncoding.EncodeToString(data) == body; {
	case !decoded:
		out.URL = valid(p.Text)
	case len(data) > inlineBody:
		out.Blob = event.BlobRef{Blob: event.DigestOf(data), Bytes: int64(len(data))}
		c.bodies[out.Blob.Blob] = data
		out.MediaType = valid(mediaType)
	default:
		out.MediaType, out.Data = valid(mediaType), data
	}
	switch kind, _, _ := strings.Cut(out.MediaType, "/"); kind {
	case "image":
		out.Type = event.ImagePart
	case "audio":
		out.Type = event.AudioPart
	}
	return out
}

// putBlobs stores the blobs of a message.
func (c *encoder) putBlobs(ctx context.Context, log *eventlog.Log, m event.Message) (err error) {
	for i, p := range m.Parts {
		if body, ok := c.bodies[p.Blob.Blob]; ok && err == nil {
			m.Parts[i].Blob, err = log.PutBlob(ctx, bytes.NewReader(body))
		}
	}
	return err
}

// decodeMessage returns the message that encode got, or the nearest one for a message of another program.
func (d decoder) decodeMessage(ctx context.Context, e *event.Event) (*ai.Message, error) {
	if e.Redacted() {
		o, _, err := event.OutlineOf(e)
		return decodeRedacted(o), err
	}
	m, _, err := event.Decode[event.Message](e)
	if err != nil {
		return nil, err
	}
	var rest messageExtra
	if err := decodeExtra(m.Extra, &rest); err != nil {
		return nil, err
	}
	out := &ai.Message{Role: genkitRole(m.Role), Metadata: rest.Metadata}
	if rest.Role != nil {
		out.Role = *rest.Role
	}
	for i := range m.Parts {
		p, err := d.decodePart(ctx, &m.Parts[i])
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		out.Content = append(out.Content, p)
	}
	return out, nil
}

func genkitRole(r event.Role) ai.Role {
	switch r {
	case event.Assistant:
		return ai.RoleModel
	case event.Tool:
		return ai.RoleTool
	case event.System, event.Developer:
		return ai.RoleSystem
	default:
		return ai.RoleUser
	}
}

// erased is the text in the place of redacted content.
const erased = "[redacted]"

// decodeRedacted keeps the calls and results of a redacted message, so that each call has its result.
func decodeRedacted(o event.Outline) *ai.Message {
	out := &ai.Message{Role: genkitRole(o.Role)}
	for _, call := range o.Calls {
		out.Content = append(out.Content, ai.NewToolRequestPart(&ai.ToolRequest{Ref: call.ID, Name: "redacted"}))
	}
	for _, id := range o.Results {
		out.Content = append(out.Content, ai.NewToolResponsePart(&ai.ToolResponse{Ref: id, Name: "redacted", Output: erased}))
	}
	if out.Content == nil {
		out.Content = []*ai.Part{ai.NewTextPart(erased)}
	}
	return out
}

func (d decoder) decodePart(ctx context.Context, p *event.Part) (*ai.Part, error) {
	var rest partExtra
	if err := decodeExtra(p.Extra, &rest); err != nil {
		return nil, err
	}
	ref := p.CallID
	if rest.NoRef {
		ref = ""
	}
	var out *ai.Part
	switch p.Type {
	case event.TextPart:
		out = ai.NewTextPart(p.Text)
	case event.ReasoningPart:
		out = ai.NewReasoningPart(p.Text, nil)
	case event.ImagePart, event.AudioPart, event.DocumentPart:
		url, err := d.mediaURL(ctx, p)
		if err != nil {
			return nil, err
		}
		out = ai.NewMediaPart(p.MediaType, url)
		if rest.ContentType != nil {
			out.ContentType = *rest.ContentType
		}
	case event.ToolCallPart:
		r := &ai.ToolRequest{Ref: ref, Name: p.Name, Partial: rest.Partial}
		if p.Arguments != nil {
			if err := json.Unmarshal(p.Arguments, &r.Input); err != nil {
				return nil, err
			}
		}
		out = ai.NewToolRequestPart(r)
	case event.ToolResultPart:
		out = ai.NewToolResponsePart(&ai.ToolResponse{Ref: ref, Name: p.Name, Content: rest.Content, Output: outputOf(p.Content)})
	case event.OpaquePart:
		if p.Kind == member {
			err := json.Unmarshal(p.Value, &out)
			return out, err
		}
		out = ai.NewTextPart(string(p.Value))
	default:
		raw, err := marshal(p)
		return ai.NewTextPart(string(raw)), err
	}
	out.Metadata = rest.Metadata
	return out, nil
}

// outputOf is the output of a tool: JSON if encodePart wrote it, a text if another program did.
func outputOf(content []event.Part) (output any) {
	var text strings.Builder
	for i := range content {
		text.WriteString(content[i].Text)
	}
	if len(content) == 0 || json.Unmarshal([]byte(text.String()), &output) == nil {
		return output
	}
	return text.String()
}

func (d decoder) mediaURL(ctx context.Context, p *event.Part) (string, error) {
	if p.URL != "" {
		return p.URL, nil
	}
	data := p.Data
	if !p.Blob.IsZero() {
		r, err := d.log.OpenBlob(ctx, p.Blob.Blob)
		if err != nil {
			return "", err
		}
		defer r.Close()
		if data, err = io.ReadAll(r); err != nil {
			return "", err
		}
	}
	return "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(data), nil
}

// extraOf is an extra with the members of v, or nil if v has none.
func extraOf(v any) (jsontext.Value, error) {
	raw, err := marshal(v)
	if err != nil || string(raw) == "{}" {
		return nil, err
	}
	return jsontext.Value(fmt.Sprintf(`{%q:%s}`, member, raw)), nil
}

func decodeExtra(extra jsontext.Value, v any) error {
	var members map[string]json.RawMessage
	if extra == nil || json.Unmarshal(extra, &members) != nil || members[member] == nil {
		return nil
	}
	return json.Unmarshal(members[member], v)
}

// valid replaces bytes that are not UTF-8, as encoding/json does.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
