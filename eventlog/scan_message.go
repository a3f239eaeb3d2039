package eventlog

import "github.com/convlog/convlog/internal/rawjson"

// messageScan checks the payload of a message_added as parsing it and its own
// rules would, and learns what it says of calls. Like the scanner it is sure or
// it is not. It knows members by their names as they are written, without
// escapes.
type messageScan struct {
	*rawjson.Scanner
	facts *facts // of which calls and results are learnt
	role  Role
	says  bool // some part is not empty
}

// scanMessage reports whether the scanner is sure that data is a payload of
// message_added that breaks no rule and needs no blob. Then f has its calls and
// results.
func scanMessage(s *rawjson.Scanner, data []byte, f *facts) (sure bool) {
	s.Begin(data)
	m := messageScan{Scanner: s, facts: f}
	if m.body() && s.End() && m.valid() {
		return true
	}
	*f = facts{}
	return false
}

func (m *messageScan) valid() bool {
	const few = 16 // those of more are compared in another way
	switch {
	case len(m.facts.calls) > few || len(m.facts.results) > few || repeats(m.facts.calls) || repeats(m.facts.results):
		return false
	case m.role == Assistant:
		return m.says
	case m.role == Tool:
		return len(m.facts.results) > 0
	default:
		return m.role != ""
	}
}

func repeats(ids []string) bool {
	_, twice := repeated(ids)
	return len(ids) > 1 && twice
}

// known is a set of members that an object has so far, of those that are known.
type known uint32

// member steps over a name, if it is the next and the first of its kind.
func (m *messageScan) member(seen *known, bit int, name string) bool {
	if *seen&(1<<bit) != 0 || !m.Literal(name) {
		return false
	}
	*seen |= 1 << bit
	return true
}

// next steps over what stands behind a member; done says that it was the last.
func (m *messageScan) next() (done, ok bool) {
	switch m.Peek() {
	case ',':
		m.At++
		return false, true
	case '}':
		m.At++
		return true, true
	default:
		return false, false
	}
}

// body steps over the message.
func (m *messageScan) body() bool {
	if !m.Literal("{") {
		return false
	}
	for seen, done := known(0), false; !done; {
		ok := false
		switch {
		case m.member(&seen, 0, `"role":`):
			ok = m.roleName()
		case m.member(&seen, 1, `"parts":`):
			ok = m.Array(func() bool { return m.part(true) })
		case m.member(&seen, 2, `"provider":`), m.member(&seen, 3, `"model":`), m.member(&seen, 4, `"response_id":`),
			m.member(&seen, 5, `"stop_reason":`), m.member(&seen, 6, `"group":`):
			ok = m.Str()
		case m.member(&seen, 7, `"usage":`):
			ok = m.usage()
		case m.member(&seen, 8, `"extra":`):
			ok = m.anyObject()
		}
		if !ok {
			return false
		}
		if done, ok = m.next(); !ok {
			return false
		}
	}
	return true
}

func (m *messageScan) anyObject() bool { return m.Peek() == '{' && m.Value() }

func (m *messageScan) roleName() bool {
	switch {
	case m.Literal(`"user"`):
		m.role = User
	case m.Literal(`"assistant"`):
		m.role = Assistant
	case m.Literal(`"tool"`):
		m.role = Tool
	case m.Literal(`"system"`):
		m.role = System
	case m.Literal(`"developer"`):
		m.role = Developer
	}
	return m.role != ""
}

func (m *messageScan) usage() bool {
	if !m.Literal("{") {
		return false
	}
	for seen, done := known(0), m.Literal("}"); !done; {
		ok := false
		switch {
		case m.member(&seen, 0, `"input_tokens":`), m.member(&seen, 1, `"output_tokens":`), m.member(&seen, 2, `"cache_read_tokens":`),
			m.member(&seen, 3, `"cache_write_tokens":`), m.member(&seen, 4, `"reasoning_tokens":`):
			from := m.At
			ok = (m.Literal("0") || m.Digits()) && m.At-from <= 18
		case m.member(&seen, 5, `"extra":`):
			ok = m.anyObject()
		}
		if !ok {
			return false
		}
		if done, ok = m.next(); !ok {
			return false
		}
	}
	return true
}

// partScan is what a part must have by its type.
type partScan struct {
	kind             PartType
	says, name, what bool         // it says something; name and kind are there and not empty
	call             rawjson.Span // call_id
}

var scannedParts = []struct {
	text string
	kind PartType
}{
	{`"text"`, TextPart}, {`"tool_result"`, ToolResultPart}, {`"tool_call"`, ToolCallPart}, {`"reasoning"`, ReasoningPart},
	{`"opaque"`, OpaquePart}, {`"server_tool_call"`, ServerToolCallPart}, {`"server_tool_result"`, ServerToolResultPart},
}

// part steps over a part that begins with its type. top says that it is one of
// the message's own, and not of a result.
func (m *messageScan) part(top bool) bool {
	var p partScan
	if !m.Enter(`{"type":`) {
		return false
	}
	for i := range scannedParts {
		if m.Literal(scannedParts[i].text) {
			p.kind = scannedParts[i].kind
			break
		}
	}
	if p.kind == "" {
		return false
	}
	for seen := known(0); ; {
		done, ok := m.next()
		if !ok {
			return false
		}
		if done {
			return m.Leave() && m.settle(&p, top)
		}
		if !m.partMember(&p, &seen) {
			return false
		}
	}
}

func (m *messageScan) partMember(p *partScan, seen *known) bool {
	ignored := false
	says := &ignored
	if p.kind == ReasoningPart {
		says = &p.says
	}
	switch {
	case m.member(seen, 0, `"text":`):
		return m.filled(&p.says)
	case m.member(seen, 1, `"call_id":`):
		id, ok := m.Plain()
		p.call = id
		return ok
	case m.member(seen, 2, `"name":`):
		return m.filled(&p.name)
	case m.member(seen, 3, `"arguments":`), m.member(seen, 4, `"value":`):
		return m.Value()
	case m.member(seen, 5, `"content":`):
		return m.Array(func() bool { return m.part(false) })
	case m.member(seen, 6, `"is_error":`), m.member(seen, 7, `"interrupted":`):
		return m.Literal("true") || m.Literal("false")
	case m.member(seen, 8, `"id":`), m.member(seen, 9, `"media_type":`), m.member(seen, 10, `"url":`):
		return m.Str()
	case m.member(seen, 11, `"signature":`), m.member(seen, 12, `"encrypted":`):
		return m.filled(says)
	case m.member(seen, 13, `"redacted":`):
		*says = *says || m.Peek() == 't'
		return m.Literal("true") || m.Literal("false")
	case m.member(seen, 14, `"kind":`):
		return m.filled(&p.what)
	case m.member(seen, 15, `"extra":`):
		p.says = true
		return m.anyObject()
	default:
		return false
	}
}

// filled steps over a string and notes whether it has anything in it.
func (m *messageScan) filled(to *bool) bool {
	content, _, ok := m.Quoted()
	*to = *to || content.To > content.From
	return ok
}

// settle checks that a part has what its type requires, and takes it in.
func (m *messageScan) settle(p *partScan, top bool) bool {
	called := p.call.To > p.call.From
	says := true
	switch p.kind {
	case TextPart, ReasoningPart:
		says = p.says
	case OpaquePart:
		if !p.what {
			return false
		}
	case ToolCallPart, ServerToolCallPart:
		if !called || !p.name {
			return false
		}
	default:
		if !called {
			return false
		}
	}
	if !top {
		return true
	}
	m.says = m.says || says
	switch p.kind {
	case ToolCallPart:
		m.facts.calls = append(m.facts.calls, string(m.Text[p.call.From:p.call.To]))
	case ToolResultPart:
		m.facts.results = append(m.facts.results, string(m.Text[p.call.From:p.call.To]))
	}
	return true
}
