package event

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Compaction is the payload of compaction_triggered: from here on, the model sees
// Entries instead of the events in Covers.
type Compaction struct {
	Strategy string `json:"strategy,omitzero"`
	Trigger  string `json:"trigger,omitzero"`
	// Covers are the events that Entries replace. Zero covers nothing.
	Covers Stretch `json:"covers,omitzero"`
	// Entries replace the covered events, in order.
	Entries []CompactionEntry `json:"entries,omitzero"`
	// Cleared are the ids of calls; the model no longer sees their results.
	Cleared []string `json:"cleared,omitzero"`
	// Replace makes Entries the whole history; Covers is ignored.
	Replace bool   `json:"replace,omitzero"`
	Summary string `json:"summary,omitzero"`
	// ReadFiles and ModifiedFiles are the paths the agent touched in the
	// covered events.
	ReadFiles     []string `json:"read_files,omitzero"`
	ModifiedFiles []string `json:"modified_files,omitzero"`
	TokensBefore  int64    `json:"tokens_before,omitzero"`
	TokensAfter   int64    `json:"tokens_after,omitzero"`
	MaxTokens     int64    `json:"max_tokens,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// CompactionEntry refers to a message or context event by seq, or is a literal
// message.
type CompactionEntry struct {
	Seq     int64    `json:"seq,omitzero"`
	Message *Message `json:"message,omitzero"`
}

// EventType is compaction_triggered.
func (c Compaction) EventType() Type { return CompactionTriggered }

// Validate applies the rules of Compaction that need no other event.
func (c Compaction) Validate() error {
	for i, entry := range c.Entries {
		if err := entry.check(); err != nil {
			return fmt.Errorf("entries: %d: %w", i, err)
		}
	}
	return firstError(
		checkCovers(c.Covers),
		requireMin("tokens_before", c.TokensBefore, 0),
		requireMin("tokens_after", c.TokensAfter, 0),
		requireMin("max_tokens", c.MaxTokens, 0),
		requireExtra(c.Extra),
	)
}

func checkCovers(c Stretch) error {
	if c == (Stretch{}) || 1 <= c.From && c.From <= c.To {
		return nil
	}
	return fmt.Errorf("%w: covers is %d to %d", ErrInvalidPayload, c.From, c.To)
}

// check holds a literal message to its structure only: an imported history may
// hold messages that no append would take.
func (c CompactionEntry) check() error {
	if c.Seq < 0 || (c.Seq > 0) == (c.Message != nil) {
		return fmt.Errorf("%w: an entry has one of seq and message", ErrInvalidPayload)
	}
	if c.Message == nil {
		return nil
	}
	return c.Message.checkStructure()
}

// Blobs lists the blobs of Compaction.
func (c Compaction) Blobs() (digests []Digest) {
	for _, entry := range c.Entries {
		if entry.Message != nil {
			digests = append(digests, entry.Message.Blobs()...)
		}
	}
	return digests
}
