package claude

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// owedCompaction is what a compact_boundary says. It becomes an event with the
// line that summarises what was said before, or before the next message, should
// that be something else.
type pendingCompaction struct {
	facts compactFacts
	kept  []int64 // messages that the model sees behind the summary
}

// owe takes in a compact_boundary that is about to be added. There is nothing to
// compact before the first line of conversation.
func (s *session) expectSummary(f *facts) {
	if s.tree.last == nil {
		return
	}
	s.pending = &pendingCompaction{facts: f.compaction()}
	head := s.pending.facts.Preserved.Head
	if n := s.tree.nodes[head]; head != "" && n != nil && n != root {
		s.pending.kept = s.tree.messagesSince(n.seq)
	}
}

// compaction covers everything up to a seq. In its place stand the summary, if
// there is one, and what was kept.
func (o *pendingCompaction) compaction(to int64, summary *event.Message) event.Compaction {
	c := event.Compaction{
		Strategy: "summary", Trigger: o.facts.Trigger, Covers: event.Covers{From: 1, To: to},
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

// isText reports whether a message is one text, as a summary alone would be.
func isText(m *event.Message) bool {
	return len(m.Parts) == 1 && m.Parts[0].Type == event.TextPart && m.Parts[0].Extra == nil && m.Text() != ""
}

// cleared leaves out the results of calls.
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
