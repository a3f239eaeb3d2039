package codex

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// agentMessage is the type of an item from another agent.
const agentMessage = "agent_message"

// item converts a response_item; nil if it stays raw. id is the id of its event, and the
// group of the response if the item is its first.
func (im *importer) item(l *line, id string) (event.Payload, error) {
	s := im.s
	m, ok, err := im.message(l.payload, id, parts.PutBlob(im.ctx, im.log))
	if err != nil || !ok || isEmptyReasoning(&m) {
		return nil, err
	}
	m.Extra = l.extra(m.Extra)
	im.failures.mark(&m)
	if m.Role == event.Assistant {
		m.Provider, m.Model = s.labels[providerLabel], s.labels[modelLabel]
		if m.Group = s.group; m.Group == "" {
			m.Group = id
		}
	}
	return m, nil
}

// put stores the body of an image or a document.
type put func(body []byte) (event.BlobRef, error)

// message converts an item; ok is false if the item is not part of the conversation. id
// makes a call id for a call without one. store is nil if bodies are not stored.
func (im *importer) message(item jsontext.Value, id string, store put) (m event.Message, ok bool, err error) {
	r := parts.Reader{Put: store}
	if im.s != nil {
		r.Names = im.s.calls
	}
	o, err := parts.Open(item)
	if err != nil {
		return m, false, nil
	}
	switch kindOf(item) {
	case "message":
		o.Take("type")
		m.Role = event.Role(o.Text("role"))
		m.Parts, err = r.Content(o.Take("content"))
	case agentMessage:
		m.Role = event.User
		m.Parts, err = r.Content(o.Take("content"))
	default:
		var p event.Part
		m.Role, p, ok, err = r.Item(&o)
		if err != nil || !ok {
			return m, false, err
		}
		if p.Type == event.ServerToolCallPart && p.CallID == "" {
			p.CallID = p.Name + "_" + id
		}
		if p.Type == event.ToolResultPart && isAborted(&p) {
			p.IsError, p.Interrupted = true, true
		}
		if p.Type == event.ToolResultPart && exitCode(&p) > 0 {
			p.IsError = true
		}
		m.Parts = []event.Part{p}
	}
	m.Extra = o.Rest()
	return m, !o.Failed && isKnownRole(m.Role), err
}

// kindOf is the type of an item.
func kindOf(item jsontext.Value) string {
	kind, _ := rawjson.Text(member(item, "type"))
	return cmp.Or(kind, "item")
}

func isKnownRole(role event.Role) bool {
	switch role {
	case event.System, event.Developer, event.User, event.Assistant, event.Tool:
		return true
	}
	return false
}

// isEmptyReasoning reports whether a message is reasoning without any content.
func isEmptyReasoning(m *event.Message) bool {
	if len(m.Parts) != 1 || m.Parts[0].Type != event.ReasoningPart {
		return false
	}
	return m.Parts[0].Text == "" && m.Parts[0].Encrypted == ""
}

// isAborted reports whether a result belongs to an interrupted call.
func isAborted(p *event.Part) bool {
	if len(p.Content) != 1 {
		return false
	}
	text := strings.TrimSpace(p.Content[0].Text)
	return text == "aborted" || strings.HasPrefix(text, "aborted by user")
}

// isPrompt reports whether the user wrote the message. Codex writes some messages in the
// user's name.
func isPrompt(m *event.Message) bool {
	if m.Role != event.User || len(m.Parts) == 0 || isFromAgent(m) {
		return false
	}
	return !records.IsGenerated(m.Text())
}

// isRollbackPoint reports whether a rollback counts a message: a prompt, or a message
// from another agent.
func isRollbackPoint(m *event.Message) bool { return isPrompt(m) || isFromAgent(m) }

func isFromAgent(m *event.Message) bool {
	return m.Role == event.User && extraText(m.Extra, "type") == agentMessage
}

// requestMark precedes the request of the user, if files or an editor's context come
// first.
const requestMark = "## My request for Codex:"

// titleOf is the title from a prompt.
func titleOf(m *event.Message) string {
	text := m.Text()
	if _, request, ok := strings.Cut(text, requestMark); ok {
		text = request
	}
	return titles.Of(text)
}

// digestOf is a digest of the content of a message, without ids and extra.
func digestOf(m *event.Message) (d event.Digest) {
	h := sha256.New()
	say := func(texts ...string) {
		for _, text := range texts {
			_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(text)))) // a hash never fails
			_, _ = h.Write([]byte(text))
		}
	}
	say(string(m.Role))
	var all func(list []event.Part)
	all = func(list []event.Part) {
		for i := range list {
			p := &list[i]
			say(string(p.Type), p.Text, p.Encrypted, p.CallID, p.Name, p.URL, string(p.Blob.Blob), p.Kind,
				canonical(p.Arguments), canonical(p.Value), canonical(p.Extra))
			all(p.Content)
		}
		say("")
	}
	all(m.Parts)
	return event.DigestOf(h.Sum(nil))
}
