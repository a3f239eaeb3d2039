package event

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// PartType is the type of a part of a message.
type PartType string

// The types of parts. A part of another type is kept as it is.
const TextPart PartType = "text"
const ReasoningPart PartType = "reasoning"
const ImagePart PartType = "image"
const AudioPart PartType = "audio"
const DocumentPart PartType = "document"
const ToolCallPart PartType = "tool_call"
const ToolResultPart PartType = "tool_result"
const ServerToolCallPart PartType = "server_tool_call"
const ServerToolResultPart PartType = "server_tool_result"
const OpaquePart PartType = "opaque"

// Known reports whether t is one of the types above.
func (t PartType) Known() bool {
	switch t {
	case TextPart, ReasoningPart, ImagePart, AudioPart, DocumentPart, ToolCallPart, ToolResultPart,
		ServerToolCallPart, ServerToolResultPart, OpaquePart:
		return true
	default:
		return false
	}
}

// Part is one piece of a message. Type decides which of the other fields mean
// something; each field names the types that use it.
type Part struct {
	Type PartType `json:"type"`
	// ID is the provider's id of the part, if it has one. Any type.
	ID string `json:"id,omitzero"`

	// Text of text and reasoning.
	Text string `json:"text,omitzero"`
	// Signature of reasoning, as the provider wants it back.
	Signature string `json:"signature,omitzero"`
	// Encrypted is opaque reasoning, as the provider wants it back.
	Encrypted string `json:"encrypted,omitzero"`
	// Redacted: the provider withheld the text of the reasoning.
	Redacted bool `json:"redacted,omitzero"`

	// MediaType of image, audio and document.
	MediaType string `json:"media_type,omitzero"`
	// CallID of calls and results pairs them.
	CallID string `json:"call_id,omitzero"`
	// Name of the tool of calls and results, or of the file of image, audio and
	// document.
	Name string `json:"name,omitzero"`
	// Blob, URL or Data is the body of image, audio and document: exactly one.
	// Data is for small bodies.
	Blob BlobRef `json:"blob,omitzero"`
	URL  string  `json:"url,omitzero"`
	Data []byte  `json:"data,omitzero"`

	// Arguments of calls, verbatim: any JSON value. Nil means {}.
	Arguments jsontext.Value `json:"arguments,omitzero"`
	// Content of results.
	Content []Part `json:"content,omitzero"`
	// IsError: the tool's result is an error.
	IsError bool `json:"is_error,omitzero"`
	// Interrupted: the tool_result ends a call that never gave one. IsError is set too.
	Interrupted bool `json:"interrupted,omitzero"`

	// Kind and Value of opaque; Value is any JSON value, verbatim.
	Kind  string         `json:"kind,omitzero"`
	Value jsontext.Value `json:"value,omitzero"`

	// Extra is an object of the provider's own members, in order, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`

	// Raw is the whole part when its Type is not a known one; it alone is
	// written then.
	Raw jsontext.Value `json:"-"`
}

// Text is a text part.
func Text(text string) Part { return Part{Type: TextPart, Text: text} }

// Reasoning is a reasoning part; signature is empty where the provider signs
// nothing.
func Reasoning(text, signature string) Part {
	return Part{Type: ReasoningPart, Text: text, Signature: signature}
}

// Image is an image kept as a blob. See Log.PutBlob.
func Image(mediaType string, body BlobRef) Part {
	return Part{Type: ImagePart, MediaType: mediaType, Blob: body}
}

// ToolCall is a call of a tool. Empty arguments are {}. Arguments that are no JSON,
// as models write them at times, are refused when the message is made
// (ErrInvalidPayload): give them as a JSON string, which every view shows as its text.
func ToolCall(callID, name string, arguments jsontext.Value) Part {
	if len(arguments) == 0 {
		arguments = jsontext.Value(`{}`)
	}
	return Part{Type: ToolCallPart, CallID: callID, Name: name, Arguments: arguments}
}

// ToolResult is the result of the call callID.
func ToolResult(callID, name string, content ...Part) Part {
	return Part{Type: ToolResultPart, CallID: callID, Name: name, Content: content}
}

// Opaque is a part that only its provider understands: any JSON value, kept
// verbatim.
func Opaque(kind string, value jsontext.Value) Part {
	return Part{Type: OpaquePart, Kind: kind, Value: value}
}

// plainPart is a Part without methods.
type plainPart Part

// MarshalJSONTo writes a part of an unknown type as it was read.
func (p *Part) MarshalJSONTo(enc *jsontext.Encoder) error {
	if p.Raw != nil && !p.Type.Known() {
		return enc.WriteValue(p.Raw)
	}
	return json.MarshalEncode(enc, (*plainPart)(p))
}

// UnmarshalJSONFrom reads a part; one of an unknown type is kept in Raw. A part
// that begins with a known type, as all do that this package writes, is read in
// one pass.
func (p *Part) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*p = Part{}
	if leadingType(dec.UnreadBuffer()).Known() {
		return json.UnmarshalDecode(dec, (*plainPart)(p))
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	var head struct {
		Type PartType `json:"type"`
	}
	if err := rawjson.Unmarshal(raw, &head); err != nil {
		return err
	}
	if head.Type.Known() {
		return rawjson.Unmarshal(raw, (*plainPart)(p))
	}
	*p = Part{Type: head.Type, Raw: raw.Clone()}
	return nil
}

// leadingType is the type of an object that begins with {"type":"…"; empty if
// it begins otherwise.
func leadingType(unread []byte) PartType {
	const prefix = `{"type":"`
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(unread, " \t\r\n,:"), []byte(prefix))
	if !ok {
		return ""
	}
	name, _, ok := bytes.Cut(rest[:min(len(rest), 32)], []byte{'"'})
	if !ok {
		return ""
	}
	return PartType(name)
}

// empty reports whether the part says nothing.
func (p *Part) empty() bool {
	switch p.Type {
	case TextPart:
		return p.Text == "" && p.Extra == nil
	case ReasoningPart:
		return p.Text == "" && p.Signature == "" && p.Encrypted == "" && !p.Redacted && p.Extra == nil
	default:
		return false
	}
}

// check refuses a part without the members that its type requires. References to
// blobs must be well-formed in a part of any type, because the log follows them.
func (p *Part) check() error {
	err := firstError(require("type of a part", p.Type), requireExtra(p.Extra), p.Blob.check("blob"), checkParts(p.Content))
	if err != nil {
		return err
	}
	switch p.Type {
	case ImagePart, AudioPart, DocumentPart:
		return p.checkBody()
	case ToolCallPart, ServerToolCallPart:
		return firstError(p.require("call_id", p.CallID), p.require("name", p.Name))
	case ToolResultPart, ServerToolResultPart:
		return p.require("call_id", p.CallID)
	case OpaquePart:
		return p.require("kind", p.Kind)
	default:
		return nil
	}
}

func (p *Part) require(name, value string) error {
	if value == "" {
		return fmt.Errorf("%w: %s part: %s is missing", ErrInvalidPayload, p.Type, name)
	}
	return nil
}

func (p *Part) checkBody() error {
	bodies := 0
	for _, present := range []bool{!p.Blob.IsZero(), p.URL != "", p.Data != nil} {
		if present {
			bodies++
		}
	}
	if bodies != 1 {
		return fmt.Errorf("%w: %s part: has %d of blob, url and data, not one", ErrInvalidPayload, p.Type, bodies)
	}
	return nil
}

func checkParts(parts []Part) error {
	for i := range parts {
		if err := parts[i].check(); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	return nil
}

// partsNeed lists the blobs of parts and of the results among them.
func partsNeed(parts []Part) (digests []Digest) {
	for i := range parts {
		digests = append(digests, parts[i].Blob.needs()...)
		digests = append(digests, partsNeed(parts[i].Content)...)
	}
	return digests
}
