package sessions

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/interop/internal/records"
)

// recordsOf counts the records of a batch. Events of one record name the same place.
func recordsOf(appends [][]event.Event) (c importrun.Counts) {
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
	for _, own := range hasOwn {
		if own {
			c.Imported++
		} else {
			c.Raw++
		}
	}
	return c
}
