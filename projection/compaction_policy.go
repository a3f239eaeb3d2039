package projection

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// HistorySize is the size of a history.
type HistorySize struct {
	// Tokens is the tokens of the newest model call since the last compaction, as its
	// provider counted them: input, cached input and output. 0 if there was no call.
	Tokens int64
	// Bytes is the size of the payloads of all messages and contexts.
	Bytes int64
	// Messages is the number of messages and contexts. Each piece of a group counts.
	Messages int
}

// Exceeds reports whether the history is larger than one of the limits. A limit of 0 is no
// limit.
func (s HistorySize) Exceeds(limit HistorySize) bool {
	return limit.Tokens > 0 && s.Tokens > limit.Tokens || limit.Bytes > 0 && s.Bytes > limit.Bytes ||
		limit.Messages > 0 && s.Messages > limit.Messages
}

// Size measures the history. The tokens are the usage of the newest
// step_completed or, without one, of the newest message with a usage. The error is a
// payload that cannot be decoded.
func (h *HistoryState) Size() (s HistorySize, err error) {
	for it := range h.items.each() {
		if it.kind != freezeItem {
			s.Bytes += int64(len(it.data))
			s.Messages++
		}
	}
	u, err := h.lastUsage()
	s.Tokens = u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens + u.OutputTokens
	return s, err
}

// lastUsage is the usage of the newest model call since the compaction.
func (h *HistoryState) lastUsage() (event.Usage, error) {
	if len(h.usage) > 0 {
		return usageOf(h.usage)
	}
	for it := range h.items.backward() {
		if it.seq <= h.since {
			break
		}
		if it.kind != messageItem {
			continue
		}
		if u, err := usageOf(it.data); err != nil || !u.IsZero() {
			return u, err
		}
	}
	return event.Usage{}, nil
}

func usageOf(data jsontext.Value) (event.Usage, error) {
	var call struct {
		Usage event.Usage `json:"usage"`
	}
	if err := json.Unmarshal(data, &call); err != nil {
		return call.Usage, fmt.Errorf("usage of the last model call: %w: %w", event.ErrInvalidPayload, err)
	}
	return call.Usage, nil
}

// KeepTurns returns a compaction that replaces all messages before the last n turns
// by a summary. A turn begins with a user message that has more than tool results.
// Contexts and the messages of the system and the developer stay. The error is a
// *CompactionError with the reason "empty" if there is no message before those turns, or no
// summary.
//
// Compact appends the compaction. It refuses it if one of the covered calls is pending.
func (h *HistoryState) KeepTurns(n int, summary string) (event.Compaction, error) {
	start, err := h.turnStart(n)
	if err != nil {
		return event.Compaction{}, err
	}
	c := event.Compaction{Strategy: "keep_turns", Covers: event.Stretch{From: 1, To: start - 1}, Summary: summary}
	covered := 0
	for it := range h.items.each() {
		if start <= 1 || !it.event() || it.kind == freezeItem || !(&compaction{Compaction: c}).covers(it) {
			continue
		}
		instructs, err := it.instructs()
		if err != nil {
			return event.Compaction{}, err
		}
		if instructs {
			c.Entries = append(c.Entries, event.CompactionEntry{Seq: it.seq})
		} else {
			covered++
		}
	}
	if covered == 0 || summary == "" {
		return event.Compaction{}, &CompactionError{Reason: reasonEmpty}
	}
	m := event.Message{Role: event.User, Parts: []event.Part{event.Text(summary)}}
	c.Entries = append(c.Entries, event.CompactionEntry{Message: &m})
	return c, nil
}

// instructs reports whether the item is a context or a message of the system or the
// developer.
func (it *item) instructs() (bool, error) {
	if it.kind == contextItem {
		return true, nil
	}
	o, err := it.outline()
	return o.Role == event.System || o.Role == event.Developer, err
}

// turnStart is the seq of the message that begins the nth last turn. For n = 0 it is
// the seq after the last message. It is 0 if there are fewer turns.
func (h *HistoryState) turnStart(n int) (start int64, err error) {
	if last := h.items.last(); n <= 0 && last != nil {
		return last.seq + 1, nil
	}
	for it := range h.items.backward() {
		if it.kind != messageItem {
			continue
		}
		o, err := it.outline()
		if err != nil {
			return 0, err
		}
		asks := o.Asks()
		if start > 0 && !asks {
			if n--; n == 0 {
				return start, nil
			}
			start = 0
		}
		if asks {
			start = it.seq
		}
	}
	if n > 1 {
		start = 0
	}
	return start, nil
}
