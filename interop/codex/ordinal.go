package codex

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/records"
)

// ordinals are the ordinals of the lines of a file. The ordinal of the first line is zero,
// or, in the file of a fork without copies, the end of the parent's lines.
type ordinals struct {
	first int64 // of the first line
	known bool
}

// has reports whether the record of an event, or the record before it, has an ordinal below
// end. Events come in order.
func (o *ordinals) has(e *event.Event, end int64) bool {
	value, ok := e.MetadataValue(records.OriginKey)
	var from records.Origin
	if !ok || json.Unmarshal(value, &from) != nil {
		return o.known // a redacted event has no origin
	}
	if n, ok := ordinalOf(e); ok {
		o.first, o.known = n-from.Line+1, true
	}
	return o.known && o.first+from.Line-1 < end
}

// ordinalOf is the ordinal in the record of an event. A message and other events have it in
// extra.
func ordinalOf(e *event.Event) (n int64, ok bool) {
	var d struct {
		Ordinal *int64 `json:"ordinal"`
		Extra   struct {
			Record struct {
				Ordinal *int64 `json:"ordinal"`
			} `json:"record"`
		} `json:"extra"`
	}
	if e.Data.Kind() != '{' || json.Unmarshal(e.Data, &d, jsontext.AllowInvalidUTF8(true)) != nil {
		return 0, false
	}
	for _, n := range []*int64{d.Extra.Record.Ordinal, d.Ordinal} {
		if n != nil {
			return *n, true
		}
	}
	return 0, false
}
