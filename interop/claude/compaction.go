package claude

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
)

// pendingCompaction is the compaction of a compact_boundary. The summary line turns it
// into an event. If another message comes first, the event is added before that message.
type pendingCompaction struct {
	facts compactFacts
	kept  []int64 // seqs of the messages that the model sees after the summary
}

// expectSummary makes the compaction of a compact_boundary pending. Before the first
// line of conversation there is nothing to compact.
func (s *session) expectSummary(f *facts) {
	if s.tree.last == nil {
		return
	}
	s.pending = &pendingCompaction{facts: f.compaction()}
	head := s.pending.facts.Preserved.Head
	if n := s.tree.node(head); head != "" && n != nil && n != root {
		s.pending.kept = s.tree.messagesSince(n.seq)
	}
}

// compaction covers all events up to seq to. The model sees the summary instead, if
// there is one, and the kept messages.
func (o *pendingCompaction) compaction(to int64, summary *event.Message) event.Compaction {
	c := event.Compaction{
		Strategy: "summary", Trigger: o.facts.Trigger, Covers: event.Stretch{From: 1, To: to},
		TokensBefore: max(o.facts.PreTokens, 0), TokensAfter: max(o.facts.PostTokens, 0),
	}
	if summary != nil {
		c.Summary, c.Extra = summary.Text(), summary.Extra
		if len(o.kept) > 0 || !isText(summary) {
			m := *summary
			m.Extra = nil
			c.Entries = append(c.Entries, event.CompactionEntry{Message: &m})
		}
	}
	for _, seq := range o.kept {
		c.Entries = append(c.Entries, event.CompactionEntry{Seq: seq})
	}
	return c
}

// isText reports whether a message is a single text.
func isText(m *event.Message) bool {
	return len(m.Parts) == 1 && m.Parts[0].Type == event.TextPart && m.Parts[0].Extra == nil && m.Text() != ""
}

// clears reports whether the record says that the user began a new conversation: the
// command /clear, or a hook that it starts.
func (f *facts) clears() bool { return f.startsAfterClear() || f.opening().clears }

// startsAfterClear reports whether the record is of a hook that /clear starts.
func (f *facts) startsAfterClear() bool {
	for _, hook := range []jsontext.Value{f.Data, f.Attachment} {
		if len(hook) == 0 {
			continue
		}
		if name, ok, err := rawjson.Lookup(hook, "hookName"); ok && err == nil {
			if text, _ := rawjson.Text(name); text == "SessionStart:clear" {
				return true
			}
		}
	}
	return false
}

// isClear reports whether the text of a user line is the command /clear.
func isClear(text string) bool {
	var o opening
	o.unwrap(text)
	return o.clears
}

// clearStrategy is the strategy of the compaction for /clear.
const clearStrategy = "clear"

// clearAll is the compaction that takes all events up to seq to from the history.
func clearAll(to int64) event.Compaction {
	return event.Compaction{Strategy: clearStrategy, Trigger: "user", Covers: event.Stretch{From: 1, To: to}}
}

// clearing converts a microcompact_boundary, which clears tool results; nil if
// malformed.
func (f *facts) clearing(record jsontext.Value) event.Payload {
	var m clearFacts
	if len(f.Microcompact) == 0 || json.Unmarshal(f.Microcompact, &m) != nil {
		return nil
	}
	return event.Compaction{
		Strategy: "clear_results", Trigger: m.Trigger, Cleared: m.ToolIDs,
		TokensBefore: max(m.PreTokens, 0), TokensAfter: max(m.PreTokens-m.TokensSaved, 0), Extra: record,
	}
}
