package projection

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Pressure is how large a history has become.
type Pressure struct {
	// Tokens is what the newest model call since the last compaction took and
	// gave, as its provider counted: input, cached input and output. 0 if there
	// was none.
	Tokens int64
	// Bytes is the size of the payloads of all messages and contexts.
	Bytes int64
	// Messages is how many messages and contexts there are; pieces of one count
	// each.
	Messages int
}

// CompactionPolicy says when a history is to be compacted.
type CompactionPolicy func(Pressure) bool

// MaxTokens is for a history whose last model call took and gave more tokens.
func MaxTokens(n int64) CompactionPolicy { return func(p Pressure) bool { return p.Tokens > n } }

// MaxBytes is for a history whose payloads are larger.
func MaxBytes(n int64) CompactionPolicy { return func(p Pressure) bool { return p.Bytes > n } }

// MaxMessages is for a history of more messages and contexts.
func MaxMessages(n int) CompactionPolicy { return func(p Pressure) bool { return p.Messages > n } }

// NeedsCompaction reports whether one of the policies says so.
func NeedsCompaction(h *HistoryState, policies ...CompactionPolicy) (bool, error) {
	p, err := h.Pressure()
	for _, needs := range policies {
		if err == nil && needs != nil && needs(p) {
			return true, nil
		}
	}
	return false, err
}

// Pressure measures the history. The tokens are those of the newest
// step_completed, or, where there is none, of the newest message that has a
// usage. An error is a payload that cannot be read.
func (h *HistoryState) Pressure() (p Pressure, err error) {
	for i := range h.items {
		if it := &h.items[i]; it.kind != freezeItem {
			p.Bytes += int64(len(it.data))
			p.Messages++
		}
	}
	u, err := h.lastUsage()
	p.Tokens = u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens + u.OutputTokens
	return p, err
}

// lastUsage is that of the newest model call since the compaction.
func (h *HistoryState) lastUsage() (event.Usage, error) {
	if len(h.usage) > 0 {
		return usageOf(h.usage)
	}
	for _, it := range slices.Backward(h.items) {
		if it.seq <= h.since {
			break
		}
		if it.kind.plain() != saidItem {
			continue
		}
		if u, err := usageOf(it.data); err != nil || !u.IsZero() {
			return u, err
		}
	}
	return event.Usage{}, nil
}

func usageOf(data jsontext.Value) (event.Usage, error) {
	var called struct {
		Usage event.Usage `json:"usage"`
	}
	if err := json.Unmarshal(data, &called); err != nil {
		return called.Usage, fmt.Errorf("usage of the last model call: %w: %w", event.ErrInvalidPayload, err)
	}
	return called.Usage, nil
}
