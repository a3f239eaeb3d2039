package projection

import (
	"cmp"
	"fmt"
	"runtime"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// Entry is one message of a rendered history.
type Entry struct {
	// Seq is the event of the message, or the first event of a group. It is 0 if the
	// message comes from a compaction or from the rendering.
	Seq int64
	// Seqs lists all events of a group that was joined into one message.
	Seqs    []int64
	Message event.Message
	// Context is the kind of a context, "context" if the event has no kind, and empty
	// for a message.
	Context string
	// Made is how the rendering changed or made the entry; empty for a message or a context
	// as it was appended:
	//
	//   - "interrupted": a result that the rendering added for a call without one.
	//   - "execution": the result in a tool_completed, for a call whose result is in no
	//     message.
	//   - "late": a user message with a result that came after a request was rendered
	//     without it.
	//   - "redacted": a replacement of content that was redacted.
	//   - "cleared": a result whose content a compaction cleared.
	//   - "working_set": the list of the files in a compaction.
	Made string
}

// The values of Entry.Made.
const (
	madeInterrupted = "interrupted"
	madeExecution   = "execution"
	madeLate        = "late"
	madeRedacted    = "redacted"
	madeCleared     = "cleared"
	madeWorkingSet  = "working_set"
)

// RenderOptions configure the rendering of a history. Use the same options for all
// requests of one conversation: other options change earlier messages and miss the
// provider's cache. The zero value renders all content as it was appended.
type RenderOptions struct {
	// Provider and Model are the target of the request. Parts that only the model
	// that made them can read (signed reasoning, opaque parts) are left out for
	// another model. Empty is any model.
	Provider, Model string
	// DemoteSystem gives system and developer messages the role user.
	DemoteSystem bool
	// ContextRole is the role of contexts and of the working set; user if empty.
	ContextRole event.Role
}

// Replacements for missing content.
const (
	redactedText    = "[redacted]"
	clearedText     = "[cleared]"
	interruptedText = "[interrupted: the call gave no result]"
)

// Messages returns the effective history: the messages that the model gets. Each tool
// call is followed by its result. The messages before a step_started stay the same
// bytes until the next compaction; later messages follow them. Messages uses the
// first of several RenderOptions. The error is a payload that cannot be decoded.
func (h *HistoryState) Messages(o ...RenderOptions) ([]Entry, error) {
	if h.room != nil {
		return nil, errLean
	}
	r := newRendering(h, optionsOf(o))
	r.frozen.entries = make([]Entry, 0, h.items.len()+1)
	if err := r.all(); err != nil {
		return nil, err
	}
	return r.frozen.entries, nil
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

// executedBefore returns the number of executions before seq until.
func executedBefore(executions []item, until int64) int {
	for i := range executions {
		if executions[i].seq > until {
			return i
		}
	}
	return len(executions)
}

// piece is a decoded item.
type piece struct {
	seq     int64 // of the event
	source  int64 // compared with the seqs of cleared calls: the event, or the compaction of a literal
	message event.Message
	context string
	prefix  bool
	made    string
}

const (
	// decodeWindow is the number of items that are decoded before they are laid out.
	decodeWindow = 1024
	// windowBytes is the size of the data at which fewer items are decoded.
	windowBytes = 8 << 20
	// fewItems is the number of items that are worth a goroutine.
	fewItems = 64
)

// decodeItems decodes as many items as there are pieces, on all processors.
func decodeItems(items []item, pieces []piece) error {
	workers := max(min(runtime.GOMAXPROCS(0), len(pieces)/fewItems), 1)
	each := (len(pieces) + workers - 1) / workers
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		decode := func() {
			for i := w * each; i < min((w+1)*each, len(pieces)) && errs[w] == nil; i++ {
				errs[w] = items[i].decode(&pieces[i])
			}
		}
		if w == workers-1 {
			decode()
		} else {
			all.Go(decode)
		}
	}
	all.Wait()
	return cmp.Or(errs...)
}

// decode decodes the payload of the item into p, and overwrites p.
func (it *item) decode(p *piece) error {
	*p = piece{seq: it.seq, source: it.seq}
	if !it.event() {
		p.seq = 0
	}
	if err := it.decodeInto(p); err != nil {
		return fmt.Errorf("render event %d: %w: %w", it.seq, event.ErrInvalidPayload, err)
	}
	return nil
}

func (it *item) decodeInto(p *piece) error {
	if it.redacted {
		return it.decodeRedacted(p)
	}
	if it.kind != contextItem {
		var err error
		p.message, err = event.DecodeKept[event.Message](&event.Event{Seq: it.seq, Type: event.MessageAdded, Data: it.data})
		return err
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

// decodeRedacted makes a message from the members that redaction keeps: the role, and
// the ids of calls and results.
func (it *item) decodeRedacted(p *piece) error {
	p.made = madeRedacted
	if it.kind == contextItem {
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

// executed returns the result in a tool_completed.
func (it *item) executed() (callID string, result event.Part, err error) {
	var t event.ToolCompletion
	if err := json.Unmarshal(it.data, &t); err != nil {
		return "", result, fmt.Errorf("render event %d: %w: %w", it.seq, event.ErrInvalidPayload, err)
	}
	switch {
	case it.redacted:
		t.Content = []event.Part{event.Text(redactedText)}
	case len(t.Content) == 0 && t.Error != "":
		t.Content = []event.Part{event.Text(t.Error)}
	}
	result = event.ToolResult(t.CallID, t.Name, t.Content...)
	result.IsError = t.IsError || t.Error != ""
	return t.CallID, result, nil
}
