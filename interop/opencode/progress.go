package opencode

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/parts"
)

// ready are the parts of the message up to the first that is still being written;
// the rest is held, and so is the message where none of it is there yet. Only the
// newest message is written.
func (t *builder) finishedParts(pieces []interop.Record) []interop.Record {
	if !t.isLast {
		return pieces
	}
	if len(pieces) == 0 && (t.info.Role == "user" || t.isUnfinished()) {
		t.held++
	}
	for i := lastStep(pieces); i < len(pieces) && t.isUnfinished(); i++ {
		if isUnfinishedPart(&pieces[i]) {
			t.held += len(pieces) - i
			return pieces[:i]
		}
	}
	return pieces
}

// lastStep is where the parts begin that are behind the end of a step.
func lastStep(pieces []interop.Record) int {
	for i := range slices.Backward(pieces) {
		if o, err := parts.Open(pieces[i].Value); err == nil && o.Maybe("type") == "step-finish" {
			return i + 1
		}
	}
	return 0
}

// waits reports whether the message is an answer that goes on: it neither was
// completed nor failed.
func (t *builder) isUnfinished() bool {
	return t.isLast && t.info.Role == "assistant" && t.info.Time.Completed == 0 && t.info.Finish == "" && t.info.Error.Kind() != '{'
}

// grows reports whether a part is still being written: a text or a thought that has
// no end yet, or a call without its arguments.
func isUnfinishedPart(rec *interop.Record) bool {
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
