package inspect

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/records"
)

// facts are what the events of a sample say about its messages.
type facts struct {
	answers map[string]answerFacts // by message id
	order   []answerFacts          // in the order of the events
	results map[string]time.Time   // when tools ended, by call id
	kinds   []string               // of the events
	times   []time.Time            // of the events
}

// answerFacts are the facts of an answer.
type answerFacts struct {
	usage        event.Usage
	began, ended time.Time
}

// sampleEvent is an event of a sample.
type sampleEvent struct {
	Kind      string `json:"event"`
	ID        string `json:"id"` // of a tool: of its call
	Timestamp string `json:"timestamp"`
	Completed string `json:"completed"`
	Output    struct {
		Usage   jsontext.Value `json:"usage"`
		Seconds float64        `json:"time"`
		Choices []struct {
			Message struct {
				ID string `json:"id"`
			} `json:"message"`
		} `json:"choices"`
	} `json:"output"`
}

// factsOf reads the facts of events.
func factsOf(events []records.Record) facts {
	f := facts{answers: map[string]answerFacts{}, results: map[string]time.Time{}}
	for i := range events {
		e := sampleEvent{Kind: "event"}
		if json.Unmarshal(events[i].Value, &e) != nil {
			e = sampleEvent{Kind: "event"}
		}
		began := records.Time(e.Timestamp)
		f.kinds, f.times = append(f.kinds, e.Kind), append(f.times, began)
		switch {
		case e.Kind == "tool" && e.ID != "":
			f.results[e.ID] = records.Time(e.Completed, e.Timestamp)
		case e.Kind == "model" && len(e.Output.Choices) > 0:
			a := answerFacts{usageOf(e.Output.Usage), began, e.ended(began)}
			f.order = append(f.order, a)
			if id := e.Output.Choices[0].Message.ID; id != "" {
				f.answers[id] = a
			}
		}
	}
	return f
}

// ended is the time when a model had answered. Older versions have the duration only.
func (e *sampleEvent) ended(began time.Time) time.Time {
	if ended := records.Time(e.Completed); !ended.IsZero() || began.IsZero() {
		return ended
	}
	return began.Add(time.Duration(max(0, e.Output.Seconds) * float64(time.Second)))
}

// start is the time when a sample started: its own, or the time of its first event, or else
// the time when the evaluation started.
func (f *facts) start(own, evaluation string) time.Time {
	at := records.Time(own)
	if i := slices.IndexFunc(f.times, func(t time.Time) bool { return !t.IsZero() }); at.IsZero() && i >= 0 {
		return f.times[i]
	}
	if at.IsZero() {
		return records.Time(evaluation)
	}
	return at
}

// date gives the items of messages their times. Answers and results have the ends of their
// events. The messages before an answer have the time when the model began it.
func (f *facts) date(items []document.Item, ids []string) {
	var next time.Time
	answers := f.factsOfAnswers(items, ids)
	for i := range slices.Backward(items) {
		m, ok := items[i].Payload.(event.Message)
		if !ok {
			continue
		}
		switch m.Role {
		case event.Assistant:
			items[i].At, next = answers[i].ended, answers[i].began
		case event.Tool:
			items[i].At = f.results[m.Parts[0].CallID]
		default:
			items[i].At = next
		}
	}
}

// factsOfAnswers returns the facts of the items that are answers. Answers without an id have
// the facts at their places, if the events have as many answers as the messages.
func (f *facts) factsOfAnswers(items []document.Item, ids []string) []answerFacts {
	all := make([]answerFacts, len(items))
	var places []int
	for i := range items {
		if m, ok := items[i].Payload.(event.Message); ok && m.Role == event.Assistant {
			all[i] = f.answers[ids[i]]
			places = append(places, i)
		}
	}
	if len(places) != len(f.order) {
		return all
	}
	for n, i := range places {
		if ids[i] == "" {
			all[i] = f.order[n]
		}
	}
	return all
}
