package sessions

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/interop/internal/records"
)

// countPresent counts the records of a batch that another import has stored. Events of
// one record name the same place.
func countPresent(p *importrun.Present, appends [][]event.Event) {
	if p == nil {
		return
	}
	type place struct{ line, offset int64 }
	hasOwn := map[place]bool{}
	for _, events := range appends {
		for i := range events {
			value, _ := events[i].MetadataValue(records.OriginKey)
			var o records.Origin
			if json.Unmarshal(value, &o) == nil {
				at := place{o.Line, o.Offset}
				hasOwn[at] = hasOwn[at] || !strings.Contains(string(events[i].Type), ":")
			}
		}
	}
	imported := 0
	for _, own := range hasOwn {
		if own {
			imported++
		}
	}
	p.Add(imported, len(hasOwn)-imported)
}
