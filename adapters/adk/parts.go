package adk

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/genai"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// inlineBody is the size of the bodies that are stored in the event; larger ones are blobs.
const inlineBody = 16 << 10

// bodies stores and reads the bodies of images, sounds and documents.
type bodies struct{ log *eventlog.Log }

// hasBlobs reports whether encodePart makes a blob of a part.
func hasBlobs(c *genai.Content) bool {
	return c != nil && slices.ContainsFunc(c.Parts, func(p *genai.Part) bool {
		return p != nil && p.InlineData != nil && len(p.InlineData.Data) > inlineBody
	})
}

// encodePart makes a part of the log. Members without a place in it are in its extra. A part of another
// kind is opaque.
func (b bodies) encodePart(ctx context.Context, p *genai.Part) (event.Part, error) {
	rest := *p
	var out event.Part
	var err error
	switch {
	case p.FunctionCall != nil && p.FunctionCall.ID != "" && p.FunctionCall.Name != "":
		out, rest.FunctionCall, err = encodeCall(*p.FunctionCall)
	case p.FunctionResponse != nil && p.FunctionResponse.ID != "":
		out, rest.FunctionResponse, err = encodeResponse(*p.FunctionResponse)
	case p.InlineData != nil && len(p.InlineData.Data) > 0:
		out, err = b.encodeBlob(ctx, p.InlineData)
		rest.InlineData = nil
	case p.FileData != nil && p.FileData.FileURI != "":
		f := p.FileData
		out = event.Part{Type: mediaPart(f.MIMEType), MediaType: valid(f.MIMEType), Name: valid(f.DisplayName), URL: valid(f.FileURI)}
		rest.FileData = nil
	case p.Text != "" && p.Thought:
		out = event.Reasoning(valid(p.Text), base64.StdEncoding.EncodeToString(p.ThoughtSignature))
		rest.Text, rest.Thought, rest.ThoughtSignature = "", false, nil
	case p.Text != "":
		out = event.Text(valid(p.Text))
		rest.Text = ""
	default:
		raw, err := marshal(p)
		return event.Opaque(member, raw), err
	}
	if err == nil {
		out.Extra, err = extraOf(rest)
	}
	return out, err
}

func encodeCall(c genai.FunctionCall) (event.Part, *genai.FunctionCall, error) {
	out := event.Part{Type: event.ToolCallPart, CallID: valid(c.ID), Name: valid(c.Name)}
	var err error
	if c.Args != nil {
		out.Arguments, err = marshal(c.Args)
	}
	c.ID, c.Name, c.Args = "", "", nil
	return out, unlessZero(c), err
}

func encodeResponse(r genai.FunctionResponse) (event.Part, *genai.FunctionResponse, error) {
	out := event.ToolResult(valid(r.ID), valid(r.Name))
	_, out.IsError = r.Response["error"]
	var err error
	if r.Response != nil {
		var raw jsontext.Value
		raw, err = marshal(r.Response)
		out.Content = []event.Part{event.Text(string(raw))}
	}
	r.ID, r.Name, r.Response = "", "", nil
	return out, unlessZero(r), err
}

func (b bodies) encodeBlob(ctx context.Context, data *genai.Blob) (event.Part, error) {
	out := event.Part{Type: mediaPart(data.MIMEType), MediaType: valid(data.MIMEType), Name: valid(data.DisplayName)}
	if len(data.Data) <= inlineBody {
		out.Data = data.Data
		return out, nil
	}
	var err error
	out.Blob, err = b.log.PutBlob(ctx, bytes.NewReader(data.Data))
	return out, err
}

// decodePart returns the part that encodePart got. A part of another writer becomes the nearest part of ADK.
func (b bodies) decodePart(ctx context.Context, p *event.Part) (*genai.Part, error) {
	out := new(genai.Part)
	if raw, ok := memberOf(p.Extra); ok {
		if err := json.Unmarshal(raw, out); err != nil {
			return nil, err
		}
	}
	switch p.Type {
	case event.TextPart:
		out.Text = p.Text
	case event.ReasoningPart:
		out.Text, out.Thought = p.Text, true
		out.ThoughtSignature, _ = base64.StdEncoding.DecodeString(p.Signature) // another writer's has no use here
		if len(out.ThoughtSignature) == 0 {
			out.ThoughtSignature = nil
		}
	case event.ToolCallPart:
		return out, decodeCall(p, out)
	case event.ToolResultPart:
		return out, decodeResponse(p, out)
	case event.ImagePart, event.AudioPart, event.DocumentPart:
		return out, b.decodeBlob(ctx, p, out)
	case event.OpaquePart:
		if p.Kind == member {
			return out, json.Unmarshal(p.Value, out)
		}
		out.Text = string(p.Value)
	default:
		raw, err := marshal(p)
		if err != nil {
			return nil, err
		}
		out.Text = string(raw)
	}
	return out, nil
}

func decodeCall(p *event.Part, out *genai.Part) error {
	if out.FunctionCall == nil {
		out.FunctionCall = new(genai.FunctionCall)
	}
	out.FunctionCall.ID, out.FunctionCall.Name = p.CallID, p.Name
	if p.Arguments == nil {
		return nil
	}
	if p.Arguments.Kind() != '{' {
		out.FunctionCall.Args = map[string]any{"arguments": string(p.Arguments)}
		return nil
	}
	return json.Unmarshal(p.Arguments, &out.FunctionCall.Args)
}

func decodeResponse(p *event.Part, out *genai.Part) error {
	if out.FunctionResponse == nil {
		out.FunctionResponse = new(genai.FunctionResponse)
	}
	out.FunctionResponse.ID, out.FunctionResponse.Name = p.CallID, p.Name
	if len(p.Content) == 0 {
		return nil
	}
	if len(p.Content) == 1 && json.Unmarshal([]byte(p.Content[0].Text), &out.FunctionResponse.Response) == nil {
		return nil
	}
	var text strings.Builder
	for i := range p.Content {
		text.WriteString(p.Content[i].Text)
	}
	name := "output"
	if p.IsError {
		name = "error"
	}
	out.FunctionResponse.Response = map[string]any{name: text.String()}
	return nil
}

func (b bodies) decodeBlob(ctx context.Context, p *event.Part, out *genai.Part) error {
	if p.URL != "" {
		out.FileData = &genai.FileData{FileURI: p.URL, MIMEType: p.MediaType, DisplayName: p.Name}
		return nil
	}
	data := p.Data
	if !p.Blob.IsZero() {
		r, err := b.log.OpenBlob(ctx, p.Blob.Blob)
		if err != nil {
			return err
		}
		defer r.Close()
		if data, err = io.ReadAll(r); err != nil {
			return err
		}
	}
	out.InlineData = &genai.Blob{Data: data, MIMEType: p.MediaType, DisplayName: p.Name}
	return nil
}

func mediaPart(mediaType string) event.PartType {
	switch kind, _, _ := strings.Cut(mediaType, "/"); kind {
	case "image":
		return event.ImagePart
	case "audio":
		return event.AudioPart
	default:
		return event.DocumentPart
	}
}

// extraOf is an extra with the members of v, or nil if v has none.
func extraOf(v any) (jsontext.Value, error) {
	raw, err := marshal(v)
	if err != nil || string(raw) == "{}" {
		return nil, err
	}
	return jsontext.Value(fmt.Sprintf(`{%q:%s}`, member, raw)), nil
}

// memberOf returns the data of this package in an extra.
func memberOf(extra jsontext.Value) (raw json.RawMessage, ok bool) {
	var members map[string]json.RawMessage
	if extra == nil || json.Unmarshal(extra, &members) != nil {
		return nil, false
	}
	raw, ok = members[member]
	return raw, ok
}

// marshal encodes v as encoding/json does, without escapes for HTML.
func marshal(v any) (jsontext.Value, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func unlessZero[T any](v T) *T {
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return &v
}

// valid replaces bytes that are not UTF-8, as encoding/json does.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
