package event

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/line"
)

// CustomPatch is the payload of custom_patched: a change of a program's own
// state.
type CustomPatch struct {
	// Name tells the states of several programs apart; empty is one of them.
	Name string `json:"name,omitzero"`
	// StateVersion is the version of the state's shape after the patch.
	StateVersion int `json:"state_version,omitzero"`
	// Patch is a JSON Patch (RFC 6902).
	Patch jsontext.Value `json:"patch"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is custom_patched.
func (c CustomPatch) EventType() Type { return CustomPatched }

// Validate applies the rules of CustomPatch that need no other event.
func (c CustomPatch) Validate() error {
	return firstError(requireMin("state_version", c.StateVersion, 0), checkPatch(c.Patch), requireExtra(c.Extra))
}

// patchOp is one operation of a JSON Patch.
type patchOp struct {
	Op    string         `json:"op"`
	Path  *string        `json:"path"`
	From  *string        `json:"from"`
	Value jsontext.Value `json:"value"`
}

func checkPatch(patch jsontext.Value) error {
	if patch.Kind() != jsontext.KindBeginArray {
		return fmt.Errorf("%w: patch is not an array", ErrInvalidPayload)
	}
	var ops []patchOp
	if err := json.Unmarshal(patch, &ops); err != nil {
		return fmt.Errorf("%w: patch: %w", ErrInvalidPayload, err)
	}
	for i, op := range ops {
		if problem := op.problem(); problem != "" {
			return fmt.Errorf("%w: patch: operation %d (%s): %s", ErrInvalidPayload, i, line.Clip(op.Op), problem)
		}
	}
	return nil
}

// problem names the missing member of an operation; "" if it is complete.
func (o *patchOp) problem() string {
	switch o.Op {
	case "add", "replace", "test":
		if o.Value == nil {
			return "value is missing"
		}
	case "move", "copy":
		if !isPointer(o.From) {
			return "from is not a JSON pointer"
		}
	case "remove":
	default:
		return "op is unknown"
	}
	if !isPointer(o.Path) {
		return "path is not a JSON pointer"
	}
	return ""
}

func isPointer(text *string) bool {
	return text != nil && (*text == "" || strings.HasPrefix(*text, "/"))
}
