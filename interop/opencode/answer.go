package opencode

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
)

// addAnswer adds the items of an answer, part by part.
func (t *builder) addAnswer(pieces []interop.Record) {
	stepped := false
	for i := range pieces {
		stepped = t.addPart(&pieces[i]) || stepped
	}
	switch {
	case t.infoValue == nil:
	case t.isUnfinished():
		t.held++ // the text may follow
	default:
		t.addPiece(t.rec, t.info.ID, nil)
	}
	usage := t.info.Tokens.usage()
	if cost := costOf(t.info.Cost); !stepped && !t.isUnfinished() && (cost > 0 || !usage.IsZero()) {
		it := document.Item{Rec: *t.rec, Part: 1, Name: "spent " + t.info.ID, At: t.at, Cost: cost, Kind: "message"}
		it.Payload = event.StepCompletion{Provider: t.info.Provider, Model: t.info.Model, Usage: usage}
		t.items = append(t.items, it)
	}
	t.addError()
}

// addPart adds the items of a part; stepped is true for a step-finish part.
func (t *builder) addPart(rec *interop.Record) (stepped bool) {
	p, kind, ok := contentPart(rec.Value)
	switch {
	case ok:
		t.addPiece(rec, p.ID, nil, p)
	case kind == "tool":
		t.addTool(rec)
	case kind == "step-finish":
		return t.addStep(rec)
	default:
		t.items = append(t.items, t.rawPart(rec, kind))
	}
	return false
}

// addPiece adds a message of the answer.
func (t *builder) addPiece(rec *interop.Record, name string, part jsontext.Value, said ...event.Part) {
	m := event.Message{
		Role: event.Assistant, Provider: t.info.Provider, Model: t.info.Model, Group: t.info.ID, Parts: said, Extra: t.extra(part),
	}
	t.items = append(t.items, document.Item{Rec: *rec, Name: name, At: t.at, Payload: m, Kind: "part"})
}

// addStep adds a step_completed.
func (t *builder) addStep(rec *interop.Record) bool {
	var told struct {
		Reason string  `json:"reason"`
		Cost   float64 `json:"cost"`
		Tokens tokens  `json:"tokens"`
	}
	if json.Unmarshal(rec.Value, &told) != nil {
		t.items = append(t.items, t.rawPart(rec, "step-finish"))
		return false
	}
	it := document.Item{Rec: *rec, Name: idOf(rec), At: t.at, Cost: costOf(told.Cost), Kind: "step-finish"}
	it.Payload = event.StepCompletion{
		Provider: t.info.Provider, Model: t.info.Model, StopReason: told.Reason, Usage: told.Tokens.usage(), Extra: rec.Value,
	}
	t.items = append(t.items, it)
	return true
}

func costOf(amount float64) event.Cost {
	cost, err := event.USD(max(0, amount))
	if err != nil {
		return 0
	}
	return cost
}

// addError adds the error of an answer.
func (t *builder) addError() {
	o, err := parts.Open(t.rec.Value)
	if err != nil {
		return
	}
	info, err := parts.Open(o.Peek("info"))
	if v := info.Peek("error"); err == nil && v.Kind() == '{' {
		it := document.Raw(document.Told(t.rec, v), "error")
		it.Name, it.At, it.Part = "error "+t.info.ID, t.at, 2
		t.items = append(t.items, it)
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
