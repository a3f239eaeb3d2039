package main

import (
	"cmp"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
)

// effectFolder finds the events of effects that say what another event says: the message
// of a model or a tool, or an event of a wait.
type effectFolder struct {
	open  map[string]*openEffectEvent // without a result, by key
	model string                      // the key of the open model call
}

// openEffectEvent is the first intent of an effect.
type openEffectEvent struct {
	event  event.Event
	intent event.EffectIntent
	folded bool // it was not printed
}

// entry is the entry of an event, or nil if another entry says the same. add adds the cost
// of a model call to the entry of its answer; false if that entry was printed.
func (f *effectFolder) entry(e *event.Event, orphaned bool, add func(event.Cost) bool) *transcript.Entry {
	x := transcript.NewEntry(e, orphaned)
	folded := false
	switch e.Type.Name() {
	case event.EffectIntended:
		folded = f.intend(e)
	case event.EffectCompleted:
		folded = f.complete(e, x)
	case event.ToolStarted, event.ToolCompleted:
		p, err := event.DecodeKept[event.ToolStart](e)
		folded = err == nil && f.open[p.IdempotencyKey] != nil
	case event.StepStarted:
		folded = f.model != ""
	case event.StepCompleted:
		p, err := event.DecodeKept[event.StepCompletion](e)
		folded = f.model != "" && err == nil && p.Error == "" && add(e.Cost)
	}
	if folded {
		return nil
	}
	return x
}

// intend folds the first intent of an effect that has a message or a wait.
func (f *effectFolder) intend(e *event.Event) bool {
	p, err := event.DecodeKept[event.EffectIntent](e)
	if err != nil || e.Redacted() {
		return false
	}
	if p.Kind == "model" {
		f.model = p.Key
	}
	if f.open[p.Key] != nil {
		return false // another attempt
	}
	if f.open == nil {
		f.open = map[string]*openEffectEvent{}
	}
	x := &openEffectEvent{event: *e, intent: p, folded: p.Attempt <= 1 && (p.Kind == "model" || p.Kind == "tool" || p.Kind == "wait")}
	f.open[p.Key] = x
	return x.folded
}

// complete folds the result of an effect whose intent was folded. Any other result gets
// the name of the effect.
func (f *effectFolder) complete(e *event.Event, x *transcript.Entry) bool {
	p, err := event.DecodeKept[event.EffectCompletion](e)
	if err != nil || e.Redacted() {
		return false
	}
	if f.model == p.Key {
		f.model = ""
	}
	effect := f.open[p.Key]
	if effect == nil {
		return false
	}
	if p.RetryAt.IsZero() {
		delete(f.open, p.Key)
	}
	x.Label = "of " + effect.intent.Name
	silent := effect.intent.Kind != "model" || p.Error == nil
	return effect.folded && silent && p.RetryAt.IsZero() && p.By == ""
}

// unfinished are the folded intents without a result, by seq.
func (f *effectFolder) unfinished() (all []*transcript.Entry) {
	for _, x := range f.open {
		if x.folded {
			entry := transcript.NewEntry(&x.event, false)
			entry.Label = "no result"
			all = append(all, entry)
		}
	}
	slices.SortFunc(all, func(x, y *transcript.Entry) int { return cmp.Compare(x.Event.Seq, y.Event.Seq) })
	return all
}
