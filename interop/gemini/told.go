package gemini

import (
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
)

// told is the conversation as the file has it so far. A list of messages in a $set is
// compared with it.
type told struct {
	messages []toldMessage
	begun    bool                    // there was a message
	results  map[string]event.Digest // the gists of the results, by call id
}

// toldMessage is a message of the conversation. Context messages and messages of results only
// are none.
type toldMessage struct {
	id   string
	gist event.Digest // of the words and calls
	// optional says that a list can leave the message out: it is empty, or a command of the
	// program.
	optional bool
}

// tell notes a message of the file.
func (t *told) tell(r *record, pieces []piece) {
	m, results := telling(r, pieces)
	for id, gist := range results {
		t.results[id] = gist
	}
	switch i := t.index(r.id); {
	case m == nil:
	case i >= 0:
		t.messages[i] = *m
	default:
		t.messages, t.begun = append(t.messages, *m), true
	}
}

func (t *told) index(id string) int {
	return slices.IndexFunc(t.messages, func(m toldMessage) bool { return m.id == id })
}

// rewind drops a message and all messages after it.
func (t *told) rewind(id string) { t.messages = t.messages[:max(t.index(id), 0)] }

// listing says how a list of messages differs from the conversation.
type listing int

const (
	continues listing = iota // it has all messages, and maybe new ones after them
	rewinds                  // it has the first messages only
	replaces                 // it is another conversation
)

// compare compares a list of messages with the conversation. The pieces are of the records.
// last is the number of the last message of the conversation in the list; -1 if there is none.
func (t *told) compare(list []*record, pieces [][]piece) (how listing, last int) {
	last = -1
	fresh := false // the list has a message that the conversation does not have
	for i, r := range list {
		m, results := telling(r, pieces[i])
		for id, gist := range results {
			if known, ok := t.results[id]; ok && known != gist {
				return replaces, last
			}
		}
		if m == nil {
			continue
		}
		at := t.index(m.id)
		switch {
		case at < 0:
			fresh = true
			continue
		case fresh || at <= last || t.messages[at].gist != m.gist || !optional(t.messages[last+1:at]):
			return replaces, last
		}
		last = at
	}
	switch {
	case optional(t.messages[last+1:]):
		return continues, last
	case fresh:
		return replaces, last
	}
	return rewinds, last
}

func optional(all []toldMessage) bool {
	return !slices.ContainsFunc(all, func(m toldMessage) bool { return !m.optional })
}

// telling returns the message of a record, and the gists of its results. The message is nil
// if the record is context or has results only.
func telling(r *record, pieces []piece) (m *toldMessage, results map[string]event.Digest) {
	results = map[string]event.Digest{}
	var said strings.Builder
	for i := range pieces {
		p := &pieces[i]
		if p.m.Role == event.Tool {
			results[p.m.Parts[0].CallID] = gistOf(&p.m)
			continue
		}
		m = &toldMessage{id: r.id}
		said.WriteString(words(p.m.Parts))
	}
	if m == nil || r.isContext() {
		return nil, results
	}
	text := said.String()
	m.gist = event.DigestOf([]byte(text))
	m.optional = text == "" || r.kind == "user" && (text[0] == '/' || text[0] == '?')
	return m, results
}

// gistOf is the digest of the words, calls and results of a message.
func gistOf(m *event.Message) event.Digest { return event.DigestOf([]byte(words(m.Parts))) }

// words are the words, calls and results in parts, without reasoning.
func words(all []event.Part) string {
	var b strings.Builder
	for i := range all {
		switch p := &all[i]; p.Type {
		case event.ReasoningPart:
		case event.TextPart:
			b.WriteString(p.Text)
		case event.ToolCallPart:
			b.WriteString("\x00call " + p.Name + " ")
			b.Write(p.Arguments)
		case event.ToolResultPart:
			b.WriteString("\x00result " + words(p.Content))
		default:
			b.WriteString("\x00" + string(p.Type) + string(p.Blob.Blob) + p.URL)
			b.Write(p.Value)
		}
	}
	return b.String()
}
