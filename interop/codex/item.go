package codex

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/parts"
)

// agentMessage is the type of an item that another agent sent to this one.
const agentMessage = "agent_message"

// item is what becomes of a response_item; nil if it is kept raw. id is that of
// its event, which names the response that begins with it.
func (im *importer) item(l *line, id string) (event.Payload, error) {
	s := im.s
	m, ok, err := im.message(l.payload, id)
	if err != nil || !ok || isEmptyReasoning(&m) {
		return nil, err
	}
	m.Extra = l.extra(m.Extra)
	if m.Role == event.Assistant {
		m.Provider, m.Model = s.labels[providerLabel], s.labels[modelLabel]
		if m.Group = s.group; m.Group == "" {
			m.Group = id
		}
	}
	return m, nil
}

// message converts an item; ok is false if it is none that is said. id names
// calls that have no name.
func (im *importer) message(item jsontext.Value, id string) (m event.Message, ok bool, err error) {
	r := parts.Reader{Names: im.s.calls, Put: parts.Keep(im.ctx, im.log)}
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

// empty reports whether a message is reasoning of which the file kept nothing.
func isEmptyReasoning(m *event.Message) bool {
	if len(m.Parts) != 1 || m.Parts[0].Type != event.ReasoningPart {
		return false
	}
	return m.Parts[0].Text == "" && m.Parts[0].Encrypted == ""
}

// aborted reports whether a result ends a call that was interrupted.
func isAborted(p *event.Part) bool {
	if len(p.Content) != 1 {
		return false
	}
	text := strings.TrimSpace(p.Content[0].Text)
	return text == "aborted" || strings.HasPrefix(text, "aborted by user")
}

// isPrompt reports whether a message is what a user said, and not what Codex
// says in the user's name.
func isPrompt(m *event.Message) bool {
	if m.Role != event.User || len(m.Parts) == 0 || isFromAgent(m) {
		return false
	}
	text := strings.TrimSpace(m.Text())
	return !slices.ContainsFunc(generatedPrefixes, func(beginning string) bool { return strings.HasPrefix(text, beginning) })
}

// instructions are how messages begin that Codex says in the user's name.
var generatedPrefixes = []string{
	"# AGENTS.md instructions for ", "<user_instructions>", "<environment_context>", "<skill>", "<user_shell_command>",
	"<user_action>", "<turn_aborted>", notificationTag, "<subagents>", "<hook_prompt", "<goal_context>", "<codex_internal_context",
}

// isBoundary reports whether a rollback counts a message: a prompt, or what
// another agent asks.
func isRollbackPoint(m *event.Message) bool { return isPrompt(m) || isFromAgent(m) }

func isFromAgent(m *event.Message) bool {
	return m.Role == event.User && extraText(m.Extra, "type") == agentMessage
}

// requestMark stands before what a user typed, where the program put files or
// what an editor shows before it.
const requestMark = "## My request for Codex:"

// titleOf is what a session is called by a prompt.
func titleOf(m *event.Message) string {
	text := m.Text()
	if _, request, ok := strings.Cut(text, requestMark); ok {
		text = request
	}
	return interop.Title(text)
}

// digestOf identifies what a message says, without ids and what the message has
// in its extra.
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
