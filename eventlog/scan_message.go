package eventlog

// messageScan checks the payload of a message_added as parsing it and its own
// rules would, and learns what it says of calls. Like the scanner it is sure or
// it is not.
type messageScan struct {
	*scanner
	role           string
	says           bool // some part is not empty
	calls, results []string
}

// message reports whether the scanner is sure that data is a payload of
// message_added that breaks no rule and needs no blob.
func (s *scanner) message(data []byte) (f facts, sure bool) {
	s.begin(data)
	m := messageScan{scanner: s}
	if !s.object(m.member) || !s.end() || !m.valid() {
		return facts{}, false
	}
	return facts{calls: m.calls, results: m.results}, true
}

func (m *messageScan) valid() bool {
	const few = 16 // those of more are compared in another way
	switch {
	case len(m.calls) > few || len(m.results) > few || repeats(m.calls) || repeats(m.results):
		return false
	case m.role == string(Assistant):
		return m.says
	case m.role == string(Tool):
		return len(m.results) > 0
	default:
		return m.role != ""
	}
}

func repeats(ids []string) bool {
	_, twice := repeated(ids)
	return twice
}

func (m *messageScan) member(name span) bool {
	switch string(m.text[name.from:name.to]) {
	case "role":
		return m.roleName()
	case "provider", "model", "response_id", "stop_reason", "group":
		return m.str()
	case "usage":
		return m.object(m.usage)
	case "parts":
		return m.array(func() bool { return m.part(true) })
	case "extra":
		return m.peek() == '{' && m.value()
	default:
		return false
	}
}

func (m *messageScan) roleName() bool {
	name, ok := m.plain()
	for _, role := range []Role{System, Developer, User, Assistant, Tool} {
		if ok && string(m.text[name.from:name.to]) == string(role) {
			m.role = string(role)
			return true
		}
	}
	return false
}

func (m *messageScan) usage(name span) bool {
	switch string(m.text[name.from:name.to]) {
	case "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens":
		from := m.at
		return (m.literal("0") || m.digits()) && m.at-from <= 18
	case "extra":
		return m.peek() == '{' && m.value()
	default:
		return false
	}
}

// partScan is what a part must have by its type.
type partScan struct {
	kind                 PartType
	says                 bool
	call, name, someKind bool // those members are there and not empty
	id                   span // of the call
}

// part steps over a part that begins with its type. top says that it is one of
// the message's own, and not of a result.
func (m *messageScan) part(top bool) bool {
	p := partScan{kind: leadingType(m.text[m.at:])}
	switch p.kind {
	case TextPart, ReasoningPart, ToolCallPart, ToolResultPart, ServerToolCallPart, ServerToolResultPart, OpaquePart:
	default:
		return false
	}
	if !m.object(func(name span) bool { return m.partMember(&p, name) }) {
		return false
	}
	switch p.kind {
	case TextPart, ReasoningPart:
		m.says = m.says || top && p.says
		return true
	case ToolCallPart, ServerToolCallPart:
		return p.call && p.name && m.take(&p, top)
	case ToolResultPart, ServerToolResultPart:
		return p.call && m.take(&p, top)
	default:
		m.says = m.says || top
		return p.someKind
	}
}

// take notes a call or a result.
func (m *messageScan) take(p *partScan, top bool) bool {
	if !top {
		return true
	}
	m.says = true
	switch id := string(m.text[p.id.from:p.id.to]); p.kind {
	case ToolCallPart:
		m.calls = append(m.calls, id)
	case ToolResultPart:
		m.results = append(m.results, id)
	}
	return true
}

func (m *messageScan) partMember(p *partScan, name span) bool {
	switch string(m.text[name.from:name.to]) {
	case "type", "id", "media_type", "url":
		return m.str()
	case "text":
		return m.filled(&p.says)
	case "signature", "encrypted":
		var ignored bool
		if p.kind == ReasoningPart {
			return m.filled(&p.says)
		}
		return m.filled(&ignored)
	case "call_id":
		id, ok := m.plain()
		p.id, p.call = id, id.to > id.from
		return ok
	case "name":
		return m.filled(&p.name)
	case "kind":
		return m.filled(&p.someKind)
	case "redacted":
		p.says = p.says || p.kind == ReasoningPart && m.peek() == 't'
		return m.literal("true") || m.literal("false")
	case "is_error", "interrupted":
		return m.literal("true") || m.literal("false")
	case "arguments", "value":
		return m.value()
	case "content":
		return m.array(func() bool { return m.part(false) })
	case "extra":
		p.says = true
		return m.peek() == '{' && m.value()
	default:
		return false
	}
}

// filled steps over a string and notes whether it has anything in it.
func (m *messageScan) filled(to *bool) bool {
	content, _, ok := m.quoted()
	*to = *to || content.to > content.from
	return ok
}
