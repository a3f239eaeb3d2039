package opencode

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// addAnswer adds the items of an answer, part by part.
func (b *builder) addAnswer(pieces []records.Record) {
	stepped := false
	for i := range pieces {
		b.part = b.ids.distinct(idOf(&pieces[i]))
		stepped = b.addPart(&pieces[i]) || stepped
	}
	switch {
	case b.infoValue == nil:
	case b.isUnfinished():
		b.held++ // the text may follow
	default:
		b.addPiece(b.rec, b.info.ID, nil)
		b.items[len(b.items)-1].Partial = true
	}
	usage := b.info.Tokens.usage()
	if cost := costOf(b.info.Cost); !stepped && !b.isUnfinished() && (cost > 0 || !usage.IsZero()) {
		it := document.Item{Rec: *b.rec, Part: 1, Partial: true, Name: "spent " + b.info.ID, At: b.until, Cost: cost, Kind: "message"}
		it.Payload = event.StepCompletion{Provider: b.info.Provider, Model: b.info.Model, Usage: usage}
		b.items = append(b.items, it)
	}
	b.addError()
}

// addPart adds the items of a part; stepped is true for a step-finish part.
func (b *builder) addPart(rec *records.Record) (stepped bool) {
	p, kind, ok := contentPart(rec.Value)
	switch {
	case ok:
		b.until = latest(b.until, endOf(rec))
		b.addPiece(rec, b.part, nil, p)
	case kind == "tool":
		b.addTool(rec)
	case kind == "step-finish":
		return b.addStep(rec)
	default:
		b.items = append(b.items, b.rawPart(rec, kind))
	}
	return false
}

// addPiece adds a message of the answer.
func (b *builder) addPiece(rec *records.Record, name string, part jsontext.Value, content ...event.Part) {
	m := event.Message{
		Role: event.Assistant, Provider: b.info.Provider, Model: b.info.Model, Group: b.info.ID, Parts: content, Extra: b.extra(part),
	}
	b.items = append(b.items, document.Item{Rec: *rec, Name: name, At: b.until, Payload: m, Kind: "part"})
}

// addStep adds a step_completed.
func (b *builder) addStep(rec *records.Record) bool {
	var finish struct {
		Reason string  `json:"reason"`
		Cost   float64 `json:"cost"`
		Tokens tokens  `json:"tokens"`
	}
	if json.Unmarshal(rec.Value, &finish) != nil {
		b.items = append(b.items, b.rawPart(rec, "step-finish"))
		return false
	}
	it := document.Item{Rec: *rec, Name: b.part, At: b.until, Cost: costOf(finish.Cost), Kind: "step-finish"}
	it.Payload = event.StepCompletion{
		Provider: b.info.Provider, Model: b.info.Model, StopReason: finish.Reason, Usage: finish.Tokens.usage(), Extra: rec.Value,
	}
	b.items = append(b.items, it)
	return true
}

// endOf is the time when OpenCode had written a part; zero if the part does not say it.
func endOf(rec *records.Record) time.Time {
	var part struct {
		Time clock `json:"time"`
	}
	if json.Unmarshal(rec.Value, &part) != nil {
		return time.Time{}
	}
	return part.Time.end()
}

func costOf(amount float64) event.Cost {
	cost, err := event.USD(max(0, amount))
	if err != nil {
		return 0
	}
	return cost
}

// addError adds the error of an answer.
func (b *builder) addError() {
	o, err := parts.Open(b.rec.Value)
	if err != nil {
		return
	}
	info, err := parts.Open(o.Peek("info"))
	if v := info.Peek("error"); err == nil && v.Kind() == '{' {
		it := document.Raw(document.Subrecord(b.rec, v), "error")
		it.Name, it.At, it.Part = "error "+b.info.ID, b.until, 2
		b.items = append(b.items, it)
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
