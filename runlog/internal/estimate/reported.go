package estimate

import (
	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/mark"
)

// Reported returns the cost of the session so far as the program computed it, if the event
// has it.
func Reported(e *event.Event) (cost event.Cost, ok bool) {
	if !mark.MayBeIn(e.Metadata, mark.ReportedCost) {
		return 0, false
	}
	v, ok := e.MetadataValue(mark.ReportedCost)
	return cost, ok && json.Unmarshal(v, &cost) == nil
}
