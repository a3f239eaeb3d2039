package claude

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// markMeasured marks the event of a raw record that has what Claude Code measured: the time of
// a turn, or the cost of the session so far.
func (f *facts) markMeasured(e *event.Event) error {
	switch {
	case f.Type == "system" && f.Subtype == "turn_duration":
		var ms float64
		if v := f.value("durationMs"); v.Kind() == '0' && json.Unmarshal(v, &ms) == nil && ms >= 1 && ms < 1<<50 {
			return e.SetMetadata("turn_ms", int64(ms))
		}
	case f.Type == "cost-state":
		var dollars float64
		v := f.value("totalCostUSD")
		if v.Kind() != '0' || json.Unmarshal(v, &dollars) != nil {
			return nil
		}
		if cost, err := event.USD(dollars); err == nil {
			return e.SetMetadata("reported_cost", cost)
		}
	}
	return nil
}

// value is the value of a member; nil if there is none.
func (f *facts) value(name string) jsontext.Value {
	for i := range f.members {
		if f.members[i].Name == name {
			return f.members[i].Value
		}
	}
	return nil
}
