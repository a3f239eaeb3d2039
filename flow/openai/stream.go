package openai

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/internal/httpmodel"
	"github.com/convlog/convlog/internal/rawjson"
)

var errNoFinish = errors.New("no finish_reason came")

// stream joins the chunks of a streamed answer to the answer that the API gives without
// streaming.
type stream struct {
	call *httpmodel.Call
	emit func(eventlog.Delta)
	// top, choice and message are the members of the answer, of its choice and of its
	// message. Texts and calls are not among them.
	top, choice, message []rawjson.Member
	texts                []*text
	calls                []*toolCall
	// slots are the parts of the message, in the order in which the first piece of each
	// came.
	slots []any // *text or *toolCall
}

// text is a member of the message that grows.
type text struct {
	name string
	strings.Builder
}

// add adds the data of an event. It reports whether the answer is complete.
func (s *stream) add(data []byte) (done bool, err error) {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		return true, nil
	}
	v, err := httpmodel.Decode(data)
	if err != nil {
		return false, s.call.Broken(err)
	}
	chunk, err := rawjson.Members(v)
	if err != nil {
		return false, s.call.Broken(err)
	}
	for _, m := range chunk {
		switch {
		case m.Name == "error" && m.Value.Kind() != 'n':
			return false, s.call.Refusal(v)
		case m.Name == "choices":
			if err := s.addChoices(m.Value); err != nil {
				return false, s.call.Broken(err)
			}
		default:
			s.top = httpmodel.Replace(s.top, m)
		}
	}
	return false, nil
}

// addChoices adds the first choice of a chunk; a chunk may have none.
func (s *stream) addChoices(v jsontext.Value) error {
	choices, err := rawjson.Elements(v)
	for i := 0; i < len(choices) && err == nil; i++ {
		var members []rawjson.Member
		if members, err = rawjson.Members(choices[i]); err != nil {
			return err
		}
		if index, ok := rawjson.Value(members, "index"); ok && string(index) != "0" {
			continue
		}
		err = s.addChoice(members)
	}
	return err
}

func (s *stream) addChoice(members []rawjson.Member) error {
	for _, m := range members {
		if m.Name != "delta" && m.Name != "message" {
			s.choice = httpmodel.Merge(s.choice, m)
			continue
		}
		if m.Value.Kind() == 'n' {
			continue
		}
		delta, err := rawjson.Members(m.Value)
		if err != nil {
			return err
		}
		if err := s.addDelta(delta); err != nil {
			return err
		}
	}
	return nil
}

// addDelta adds a piece of the message.
func (s *stream) addDelta(delta []rawjson.Member) error {
	for _, m := range delta {
		piece, isText := rawjson.Text(m.Value)
		switch kind := partTypes[m.Name]; {
		case m.Name == "tool_calls" && m.Value.Kind() == '[':
			if err := s.addCalls(m.Value); err != nil {
				return err
			}
		case kind != "" && isText:
			s.addText(m.Name, kind, piece)
		case m.Name == "content" && m.Value.Kind() == '[':
			if err := s.addBlocks(m); err != nil {
				return err
			}
		default:
			s.message = httpmodel.Merge(s.message, m)
		}
	}
	return nil
}

// partTypes are the members of a message that grow, with the types of their parts.
var partTypes = map[string]event.PartType{
	"content": event.TextPart, "refusal": event.TextPart,
	"reasoning_content": event.ReasoningPart, "reasoning": event.ReasoningPart,
}

func (s *stream) addText(name string, kind event.PartType, piece string) {
	if piece == "" {
		return
	}
	i := slices.IndexFunc(s.texts, func(t *text) bool { return t.name == name })
	if i < 0 {
		i = len(s.texts)
		s.texts = append(s.texts, &text{name: name})
	}
	t := s.texts[i]
	t.WriteString(piece)
	if kind == event.ReasoningPart && s.secondReasoning(t) {
		return
	}
	s.emitPiece(t, kind, piece)
}

// secondReasoning reports whether t repeats the reasoning under a second name, as some
// servers do.
func (s *stream) secondReasoning(t *text) bool {
	for _, u := range s.texts {
		if partTypes[u.name] == event.ReasoningPart {
			return u != t
		}
	}
	return false
}

// addBlocks adds content that is an array: its texts to the text, and other blocks to the
// member content_blocks of the message.
func (s *stream) addBlocks(content rawjson.Member) error {
	blocks, err := rawjson.Elements(content.Value)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		text, _, _ := rawjson.Lookup(b, "text")
		if piece, ok := rawjson.Text(text); ok {
			s.addText("content", event.TextPart, piece)
			continue
		}
		s.message = httpmodel.Merge(s.message, rawjson.Member{Name: "content_blocks", Value: rawjson.Array([]jsontext.Value{b})})
	}
	return nil
}

// emitPiece emits a piece of the part of a slot.
func (s *stream) emitPiece(slot any, kind event.PartType, piece string) {
	i := slices.Index(s.slots, slot)
	if i < 0 {
		i = len(s.slots)
		s.slots = append(s.slots, slot)
	}
	if piece != "" {
		s.emit(eventlog.Delta{Part: i, Kind: kind, Text: piece})
	}
}

// answer is the whole answer. Its error reports a missing finish_reason.
func (s *stream) answer() (jsontext.Value, error) {
	if finish, _ := rawjson.Value(s.choice, "finish_reason"); finish == nil {
		return nil, s.call.Broken(errNoFinish)
	}
	message := httpmodel.Body(s.message)
	for _, t := range s.texts {
		message.Set(t.name, t.String())
	}
	if len(s.calls) > 0 {
		var calls []jsontext.Value
		for _, c := range s.calls {
			calls = append(calls, c.json())
		}
		message.Set("tool_calls", rawjson.Array(calls))
	}
	choice := httpmodel.Body(s.choice)
	choice.Set("message", message.JSON())
	top := httpmodel.Body(s.top)
	top.Set("choices", rawjson.Array([]jsontext.Value{choice.JSON()}))
	return top.JSON(), nil
}

// inOrder sorts the parts of the message in the order of the slots, as the deltas count
// them.
func (s *stream) inOrder(parts []event.Part) {
	type ranked struct {
		part event.Part
		rank int
	}
	calls := 0
	all := make([]ranked, len(parts))
	for i := range parts {
		all[i] = ranked{parts[i], slices.Index(s.slots, s.slotOf(&parts[i], &calls))}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return a.rank - b.rank })
	for i := range all {
		parts[i] = all[i].part
	}
}

// slotOf returns the slot of a part. calls counts the calls before it.
func (s *stream) slotOf(p *event.Part, calls *int) any {
	if p.Type != event.ReasoningPart && p.Type != event.TextPart {
		if *calls++; *calls <= len(s.calls) {
			return s.calls[*calls-1]
		}
		return nil
	}
	for _, t := range s.texts {
		isRefusal := p.Type == event.TextPart && p.Extra != nil
		if partTypes[t.name] == p.Type && (t.name == "refusal") == isRefusal {
			return t
		}
	}
	return nil
}
