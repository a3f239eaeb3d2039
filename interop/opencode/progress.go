package opencode

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// finishedParts returns the parts before the first unfinished part. The others are held,
// and so is a message without a finished part. Only the newest message can be
// unfinished.
func (b *builder) finishedParts(pieces []records.Record) []records.Record {
	if !b.isLast {
		return pieces
	}
	if len(pieces) == 0 && (b.info.Role == "user" || b.isUnfinished()) {
		b.held++
	}
	for i := lastStep(pieces); i < len(pieces) && b.isUnfinished(); i++ {
		if isUnfinishedPart(&pieces[i]) {
			b.held += len(pieces) - i
			return pieces[:i]
		}
	}
	return pieces
}

// lastStep is the index after the last step-finish part.
func lastStep(pieces []records.Record) int {
	for i := range slices.Backward(pieces) {
		if o, err := parts.Open(pieces[i].Value); err == nil && o.Maybe("type") == "step-finish" {
			return i + 1
		}
	}
	return 0
}

// isUnfinished reports whether the message is an answer that is neither completed nor
// failed.
func (b *builder) isUnfinished() bool {
	return b.isLast && b.info.Role == "assistant" && b.info.Time.Completed == 0 && b.info.Finish == "" && b.info.Error.Kind() != '{'
}

// isUnfinishedPart reports whether OpenCode is still writing a part: a text or reasoning
// without an end, or a call without arguments.
func isUnfinishedPart(rec *records.Record) bool {
	var part struct {
		Type  string `json:"type"`
		Time  clock  `json:"time"`
		State struct {
			Status string `json:"status"`
		} `json:"state"`
	}
	if json.Unmarshal(rec.Value, &part) != nil {
		return false
	}
	switch part.Type {
	case "text", "reasoning":
		return part.Time.Start > 0 && part.Time.End == 0
	case "tool":
		return part.State.Status == "pending"
	}
	return false
}
