package flow

import (
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
)

// maxToolName is the longest name of a tool that all providers accept.
const maxToolName = 64

// checkTools ends the execution with ErrStart if providers refuse one of the tools by its name,
// two tools have one name, or a tool lacks the review of its class. Nothing is recorded then, and the turn stays open.
func (t *turn) checkTools(tools []ToolSpec) error {
	if err := checkTools(tools); err != nil {
		return t.stop(fmt.Errorf("%w: agent %q: %w", ErrStart, t.r.name, err))
	}
	return nil
}

func checkTools(tools []ToolSpec) error {
	known := map[string]bool{}
	for _, tool := range tools {
		switch {
		case !modelapi.IsName(tool.Name, maxToolName):
			return fmt.Errorf("tool %q: a name has 1 to %d letters, digits, _ and -", tool.Name, maxToolName)
		case known[tool.Name]:
			return fmt.Errorf("two tools have the name %q", tool.Name)
		case tool.Class == event.EffectUnsafeOnce && tool.Review == nil:
			return fmt.Errorf("tool %q: a tool of class unsafe_once needs a review", tool.Name)
		case tool.invalid != nil:
			return fmt.Errorf("tool %q: %w", tool.Name, tool.invalid)
		}
		known[tool.Name] = true
	}
	return nil
}
