package codex

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// The parts of a record's events, for their keys and origins.
const (
	ownPart   = iota // the event of the record itself
	titlePart        // session_updated with the title, from a prompt
	childPart        // child events after the record
)

// convert queues the event of the record, and the events that follow from it.
func (im *importer) convert(l *line) error {
	id := im.s.NextID(l.key(), im.at)
	p, err := im.payload(l, id.String())
	if err != nil {
		return err
	}
	e, converted, err := im.event(l, p)
	if err != nil {
		return err
	}
	seq := im.s.Add(l.key(), im.at, e)
	if !converted {
		im.result.Raw++
	} else {
		im.result.Imported++
		im.s.index(p, id, seq)
	}
	return im.addFollowing(l, p)
}

// event makes the event of a payload. Without a payload, or if the log does not accept
// it, the event holds the raw record, and converted is false.
func (im *importer) event(l *line, p event.Payload) (e event.Event, converted bool, err error) {
	if p != nil {
		e, err = l.rec.EventOf(p, l.rec.Whole(ownPart))
		converted = err == nil
	}
	if !converted {
		e, err = l.rec.Raw(l.rawType(), ownPart)
	}
	if err == nil && !converted && l.isRepeat() {
		err = e.SetMetadata("repeats", true)
	}
	if m, ok := p.(event.Message); ok && err == nil && converted && m.Role == event.User && !isPrompt(&m) {
		err = e.SetMetadata("context", true)
	}
	if err == nil && !im.isHeader(l) {
		err = im.markInherited(&e)
	}
	if err == nil {
		err = im.markCopy(&e)
	}
	if err == nil && e.Type.Name() == event.SessionStarted {
		err = im.s.MarkStart(&e)
	}
	if err == nil && im.isReplacement(l) {
		err = e.SetMetadata(mark.NoHeader, true)
	}
	return e, converted, err
}

// markCopy marks the start of a fork that has copies of the events of its parent: the log
// did not have the parent. A sub-agent names its parent anyway.
func (im *importer) markCopy(e *event.Event) error {
	h := im.header
	if e.Type.Name() != event.SessionStarted || h.forkedFrom == "" || h.spawnedBy != "" || event.CheckSessionID(h.forkedFrom) != nil {
		return nil
	}
	return e.SetMetadata(mark.CopyOf, mark.Copy{Session: h.forkedFrom})
}

// isHeader reports whether the record is a header of the session itself.
func (im *importer) isHeader(l *line) bool { return l.kind == metaKind && l.text("id") == im.header.id }

// isRepeat reports whether the record repeats the text of a response_item.
func (l *line) isRepeat() bool {
	if l.kind != eventKind {
		return false
	}
	switch l.text("type") {
	case "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content":
		return true
	}
	return false
}

// markInherited marks an event that the file of a fork copied. Its cost counts in the
// parent.
func (im *importer) markInherited(e *event.Event) error {
	if !im.isOwned && !(im.inCopies() && im.countsInParent()) {
		return nil
	}
	return e.SetMetadata("inherited", true)
}

// addFollowing adds the events that follow a record: a title and child events.
func (im *importer) addFollowing(l *line, p event.Payload) error {
	put := func(key sessions.Key, part int, p event.Payload) error {
		e, err := l.rec.Event(part, p)
		if err == nil {
			err = im.markInherited(&e)
		}
		if err != nil {
			return err
		}
		id := im.s.NextID(key, im.at)
		im.s.index(p, id, im.s.Join(key, im.at, e))
		return nil
	}
	if title := im.titleFrom(l, p); title != "" {
		if err := put(sessions.Key{Part: titlePart}, titlePart, event.Session{Updated: true, Title: title}); err != nil {
			return err
		}
	}
	for i, c := range im.s.childEvents(l, p) {
		key := sessions.Key{Own: string(c.EventType()) + " " + c.ChildID, Part: childPart}
		if err := put(key, childPart+i, c); err != nil {
			return err
		}
	}
	return nil
}

// titleFrom returns the title from a prompt, or from the task of a sub-agent, if the
// session has none.
func (im *importer) titleFrom(l *line, p event.Payload) string {
	m, ok := p.(event.Message)
	switch {
	case !ok || im.s.hasTitle || im.s.Erased || im.inCopies():
		return ""
	case isPrompt(&m):
		return titleOf(&m)
	case isFromAgent(&m) && im.header.spawnedBy != "":
		return taskTitle(l)
	}
	return ""
}

// payload converts a record; nil if the record stays raw. id is the id of its event.
func (im *importer) payload(l *line, id string) (event.Payload, error) {
	if !l.isObject() {
		return nil, nil
	}
	switch l.kind {
	case metaKind:
		return im.metaPayload(l), nil
	case "turn_context":
		return im.s.settings(l, l.members.Peek), nil
	case itemKind:
		return im.item(l, id)
	case "compacted":
		return im.compaction(l)
	case eventKind:
		return im.eventPayload(l), nil
	}
	return nil, nil
}

// eventPayload converts an event_msg.
func (im *importer) eventPayload(l *line) event.Payload {
	s := im.s
	switch l.text("type") {
	case "task_started", "turn_started":
		return event.TurnStart{Index: s.path.turnCount(), InputID: s.review, Extra: l.payloadExtra()}
	case "task_complete", "turn_complete", "turn_aborted":
		return s.turnEnd(l)
	case "token_count":
		return s.step(l)
	case "thread_rolled_back":
		return s.rollback(l)
	case "thread_settings_applied":
		settings := l.members.Peek("thread_settings")
		return s.settings(l, func(name string) jsontext.Value { return member(settings, name) })
	case "thread_name_updated":
		if name := strings.TrimSpace(l.text("thread_name")); name != "" && l.text("thread_id") == s.ID {
			return event.Session{Updated: true, Title: name, Extra: l.payloadExtra()}
		}
	case "collab_agent_spawn_end", "sub_agent_activity":
		return s.spawnEvent(l)
	case "entered_review_mode":
		return reviewInput(l)
	}
	return nil
}

// reviewInput converts the request of the user for a review. The prompt of the review is
// in the history of the reviewing model only.
func reviewInput(l *line) event.Payload {
	request, err := json.Marshal(strings.TrimSpace("/review " + l.text("user_facing_hint")))
	if err != nil {
		return nil
	}
	id := cmp.Or(l.text("turn_id"), l.text("item_id"), string(l.rec.Key))
	return event.External{Source: formatName, Kind: "review", InputID: id, Value: request, Extra: l.payloadExtra()}
}

// metaPayload converts a session_meta.
func (im *importer) metaPayload(l *line) event.Payload {
	h, s := headerOf(l), im.s
	if h.id != s.ID {
		return nil
	}
	p := event.Session{Updated: true, Labels: s.changes(h.labels), Extra: l.payloadExtra()}
	if h.cwd != s.cwd {
		p.CWD = h.cwd
	}
	if s.hasSource {
		if p.Labels == nil && p.CWD == "" {
			return nil
		}
		return p
	}
	p.Agent, p.Source = "codex", h.source(l.rec)
	if s.New() {
		p.Updated, p.Parent, p.Title = false, im.parentCall(&h), im.title
		if h.hasCopies() {
			p.Title = "" // the prompt is a copy from the parent
		}
	}
	if im.isReplacement(l) {
		p.Extra = nil
	}
	return p
}

// parentCall returns the parent of a sub-agent, with the call if the parent has it.
func (im *importer) parentCall(h *header) event.SessionParent {
	p := event.SessionParent{SessionID: h.spawnedBy}
	if im.parent != nil && h.spawnedBy == im.parent.id {
		p.CallID, p.Seq = im.parent.call(h.id)
	}
	return p
}

// settings converts the settings of a turn; nil if nothing changed.
func (s *session) settings(l *line, value func(name string) jsontext.Value) event.Payload {
	text := func(names ...string) string {
		for _, name := range names {
			if text, _ := rawjson.Text(value(name)); text != "" {
				return text
			}
		}
		return ""
	}
	policy := value("sandbox_policy")
	sandbox, ok := rawjson.Text(member(policy, "type"))
	if !ok {
		sandbox, _ = rawjson.Text(member(policy, "mode"))
	}
	p := event.Session{Updated: true, Extra: l.payloadExtra(), Labels: s.changes(withoutEmpty(map[string]string{
		modelLabel: text("model"), "effort": text("effort", "reasoning_effort"), "approval_policy": text("approval_policy"), "sandbox": sandbox,
	}))}
	if cwd := text("cwd"); cwd != s.cwd {
		p.CWD = cwd
	}
	if p.Labels == nil && p.CWD == "" {
		return nil
	}
	return p
}

// rollback converts a thread_rolled_back. The head moves to before the first of the
// prompts that are rolled back, and to before the turn that the prompt began.
func (s *session) rollback(l *line) event.Payload {
	var p struct {
		Turns int `json:"num_turns"`
	}
	l.decode(&p)
	var cuts []int64
	for _, n := range s.path.activeMessages() {
		if n.turnStart > 0 {
			cuts = append(cuts, n.turnStart)
		}
	}
	if p.Turns <= 0 || len(cuts) == 0 {
		return nil
	}
	to := cuts[max(0, len(cuts)-p.Turns)] - 1
	reason := "rolled back " + strconv.Itoa(p.Turns) + " turns"
	if p.Turns == 1 {
		reason = "rolled back a turn"
	}
	return event.HeadMove{To: to, Reason: reason, Extra: l.payloadExtra()}
}
