package projection

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Entry is one message of a history.
type Entry struct {
	// Seq is the event it comes from, the first one of a group; 0 where a
	// compaction or the rendering made it.
	Seq int64
	// Seqs are all events of a group that was folded into one message.
	Seqs    []int64
	Message event.Message
	// Context is the kind of a context, "context" where it has none; it is empty
	// for messages.
	Context string
	// Made says why the rendering made it, or what of it.
	Made Made
}

// Made says what of an entry the rendering made.
type Made string

const (
	// AsSaid: nothing.
	AsSaid Made = ""
	// MadeInterrupted is a result for a call that never gave one.
	MadeInterrupted Made = "interrupted"
	// MadeExecution is a result that was recorded when the tool had run, and never
	// became a message.
	MadeExecution Made = "execution"
	// MadeLate is a user's message that holds a result, whose call was rendered
	// without it into a request.
	MadeLate Made = "late"
	// MadeRedacted stands for content that was redacted.
	MadeRedacted Made = "redacted"
	// MadeCleared is a result that a compaction shows no more.
	MadeCleared Made = "cleared"
	// MadeWorkingSet is the files that a compaction names.
	MadeWorkingSet Made = "working_set"
)

// RenderOptions say how a history is rendered. A history is rendered for one
// conversation with the same options each time: another provider's caches are
// cold anyhow. The zero value shows everything as it was said.
type RenderOptions struct {
	// Provider and Model are whom it is for: parts that only the model that made
	// them understands (signed reasoning, opaque parts) are left out for others.
	// Empty is anybody.
	Provider, Model string
	// DemoteSystem makes messages of the system and the developer the user's.
	DemoteSystem bool
	// ContextRole is who says contexts and what a compaction sums up; the user if
	// empty.
	ContextRole event.Role
}

// What stands in the place of content that is not there.
const (
	redactedText    = "[redacted]"
	clearedText     = "[cleared]"
	interruptedText = "[interrupted: the call gave no result]"
)

// Messages is the effective history: what the model sees. Each call of a tool is
// followed by its result. What was rendered before a step_started stays as it
// was, byte by byte, until the next compaction; what came since is added behind
// it. At most one RenderOptions is used. An error is a payload that cannot be
// read.
func (h *HistoryState) Messages(o ...RenderOptions) ([]Entry, error) {
	l := layout{options: optionsOf(o), cleared: h.cleared, answered: map[string]Made{}, entries: make([]Entry, 0, len(h.items)+1)}
	items, executions := h.items, h.executions
	for first := true; first || len(items) > 0; first = false {
		n, until := blockEnd(items)
		x := executedBefore(executions, until)
		var lead *workingSet
		if first {
			lead = &h.files
		}
		if err := l.block(items[:n], executions[:x], lead); err != nil {
			return nil, err
		}
		items, executions = items[min(n+1, len(items)):], executions[x:]
	}
	return l.entries, nil
}

func optionsOf(o []RenderOptions) (first RenderOptions) {
	if len(o) > 0 {
		first = o[0]
	}
	if first.ContextRole == "" {
		first.ContextRole = event.User
	}
	return first
}

// blockEnd is how many items stand before the first freeze, and its seq; 0 if
// there is none.
func blockEnd(items []item) (n int, seq int64) {
	for i := range items {
		if items[i].kind == freezeItem {
			return i, items[i].seq
		}
	}
	return len(items), 0
}

// executedBefore is how many executions came before a freeze; all, if until is 0.
func executedBefore(executions []item, until int64) int {
	for i := range executions {
		if until > 0 && executions[i].seq > until {
			return i
		}
	}
	return len(executions)
}

// piece is an item that was read.
type piece struct {
	seq     int64 // of the event
	source  int64 // the seq that decides what was cleared: of a literal, its compaction's
	message event.Message
	context string
	prefix  bool
	made    Made
}

// read reads the payload of the item. What it was before is gone.
func (it *item) read(p *piece) error {
	*p = piece{seq: it.seq, source: it.seq}
	if !it.event() {
		p.seq = 0
	}
	if err := it.readInto(p); err != nil {
		return fmt.Errorf("render event %d: %w: %w", it.seq, event.ErrInvalidPayload, err)
	}
	return nil
}

func (it *item) readInto(p *piece) error {
	if it.kind.isRedacted() {
		return it.readRedacted(p)
	}
	if it.kind != contextItem {
		return json.Unmarshal(it.data, &p.message)
	}
	var c event.ContextEntry
	err := json.Unmarshal(it.data, &c)
	p.fromContext(c)
	return err
}

func (p *piece) fromContext(c event.ContextEntry) {
	p.message, p.context, p.prefix = event.Message{Parts: c.Parts, Extra: c.Extra}, c.Kind, c.Placement == event.AsPrefix
	if p.context == "" {
		p.context = "context"
	}
}

// readRedacted makes up a payload from what redaction kept: who spoke, and
// which calls were made and answered.
func (it *item) readRedacted(p *piece) error {
	p.made = MadeRedacted
	if it.kind.plain() == contextItem {
		var c event.ContextEntry
		err := json.Unmarshal(it.data, &c)
		c.Parts = []event.Part{event.Text(redactedText)}
		p.fromContext(c)
		return err
	}
	var kept struct {
		event.Message
		Calls   []string `json:"calls"`
		Results []string `json:"results"`
	}
	if err := json.Unmarshal(it.data, &kept); err != nil {
		return err
	}
	p.message = kept.Message
	if len(kept.Results) == 0 {
		p.message.Parts = append(p.message.Parts, event.Text(redactedText))
	}
	for _, id := range kept.Calls {
		p.message.Parts = append(p.message.Parts, event.ToolCall(id, "redacted", nil))
	}
	for _, id := range kept.Results {
		p.message.Parts = append(p.message.Parts, event.ToolResult(id, "", event.Text(redactedText)))
	}
	return nil
}

// executed is the result of a tool_completed.
func (it *item) executed() (callID string, result event.Part, err error) {
	var t event.ToolCompletion
	if err := json.Unmarshal(it.data, &t); err != nil {
		return "", result, fmt.Errorf("render event %d: %w: %w", it.seq, event.ErrInvalidPayload, err)
	}
	switch {
	case it.kind.isRedacted():
		t.Content = []event.Part{event.Text(redactedText)}
	case len(t.Content) == 0 && t.Error != "":
		t.Content = []event.Part{event.Text(t.Error)}
	}
	result = event.ToolResult(t.CallID, t.Name, t.Content...)
	result.IsError = t.IsError || t.Error != ""
	return t.CallID, result, nil
}

// executedCall is the call of a tool_completed, empty if it has none.
func executedCall(data jsontext.Value) (string, error) {
	var t struct {
		CallID string `json:"call_id"`
	}
	err := json.Unmarshal(data, &t)
	return t.CallID, err
}
