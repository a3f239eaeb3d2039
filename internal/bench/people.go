//go:build unix

package main

import (
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// The numbers of this file come from 376 sessions that logtool imported from 72 files of
// 13 programs: 20,806 events in lines of 1,949 bytes on average. 277 of these bytes are
// metadata of the import, which the generated events do not have.

// shares are how many of 1,000 events are of a kind. session_started and the system
// message are not in the table: a session has one of each.
var shares = map[string]float64{
	"user":            111,
	"call":            198, // of the assistant, with a call
	"result":          198,
	"answer":          139, // of the assistant, with text only
	"reasoning":       24,  // of the assistant, with reasoning only
	"program":         218, // a type that only the importing program knows
	"step_completed":  40,
	"head_moved":      25,
	"session_updated": 8,
	"turn_started":    2.5,
	"child_requested": 1.3,
	"compaction":      0.5,
}

// perTurn returns how many events of a kind a turn has on average.
func perTurn(kind string) float64 { return shares[kind] / shares["user"] }

// spread is a distribution: the percentiles 10, 50, 90 and 99, and the largest value.
type spread [5]float64

var (
	callsOfTurn  = spread{0, 0, 3, 27, 136}
	sessionSizes = spread{14, 23, 63, 742, 2389} // in events
	programRuns  = spread{1, 1, 6, 10, 135}      // events of a program that follow each other
)

// The lengths of texts and values, in bytes.
var (
	userTexts      = spread{35, 90, 209, 3529, 9573}
	answerTexts    = spread{65, 231, 884, 2755, 16_007}
	reasoningTexts = spread{46, 674, 3061, 15_700, 25_692}
	callArguments  = spread{28, 133, 756, 5466, 55_826}
	resultTexts    = spread{19, 457, 3609, 20_250, 73_469}
	programData    = spread{132, 664, 1479, 10_897, 49_501}
	systemTexts    = spread{996, 6155, 6155, 10_858, 17_885}
	summaryTexts   = spread{500, 8000, 15_000, 17_000, 17_597}
)

// draw returns a random value of the distribution. Between two percentiles the values
// are spread evenly on a logarithmic scale.
func (w *writer) draw(s spread) int {
	ranks := [...]float64{0, 0.1, 0.5, 0.9, 0.99, 1}
	u := w.rand.Float64()
	for i, high := range s {
		if u > ranks[i+1] {
			continue
		}
		low := s[max(i-1, 0)]
		part := (u - ranks[i]) / (ranks[i+1] - ranks[i])
		return int((low+1)*math.Pow((high+1)/(low+1), part)) - 1
	}
	return int(s[len(s)-1])
}

// often reports true with the given probability.
func (w *writer) often(probability float64) bool { return w.rand.Float64() < probability }

// report is the payload of an event whose type only its program knows.
type report struct {
	UUID string `json:"uuid"`
	CWD  string `json:"cwd"`
	Text string `json:"text"`
}

// EventType is a type outside the vocabulary.
func (report) EventType() event.Type { return "bench:progress" }

// conversation generates the payloads of one session, from its first event.
type conversation struct {
	*writer
	payloads []event.Payload
	ends     []int // the number of payloads at the end of each turn
}

// people returns n events of a session: complete turns with the shares of the table. The
// first event must get seq 1.
func people(n int) []event.Event { return newEvents(converse(newWriter(), n).payloads) }

// uncompacted is people with a message of the user in the place of each compaction.
func uncompacted(n int) []event.Event {
	payloads := converse(newWriter(), n).payloads
	for i, p := range payloads {
		if _, ok := p.(event.Compaction); ok {
			payloads[i] = event.Message{Role: event.User, Parts: []event.Part{event.Text("go on")}}
		}
	}
	return newEvents(payloads)
}

func newEvents(payloads []event.Payload) []event.Event {
	events := make([]event.Event, len(payloads))
	for i, p := range payloads {
		events[i] = event.New(p)
	}
	return events
}

// converse generates n payloads.
func converse(w *writer, n int) *conversation {
	c := &conversation{writer: w}
	c.start()
	for len(c.payloads) < n {
		c.turn()
	}
	if len(c.payloads) > n {
		c.shorten(n)
	}
	return c
}

// shorten replaces the last turn, so that there are n payloads and no call is without a
// result.
func (c *conversation) shorten(n int) {
	c.ends = c.ends[:len(c.ends)-1]
	c.payloads = c.payloads[:min(c.lastEnd(), n)]
	for len(c.payloads) < n {
		c.user()
	}
	c.ends = append(c.ends, n)
}

// lastEnd returns the number of payloads before the turn that is generated.
func (c *conversation) lastEnd() int {
	if len(c.ends) == 0 {
		return startLen
	}
	return c.ends[len(c.ends)-1]
}

func (c *conversation) add(p ...event.Payload) { c.payloads = append(c.payloads, p...) }

// startLen is the number of events before the first turn.
const startLen = 2

func (c *conversation) start() {
	c.add(event.Session{Title: c.text(40), CWD: "/work/project", Source: event.SessionSource{Format: "bench"}})
	c.say(event.System, event.Text(c.text(c.draw(systemTexts))))
}

func (c *conversation) say(role event.Role, parts ...event.Part) {
	m := event.Message{Role: role, Parts: parts}
	if role == event.Assistant {
		m.Provider, m.Model, m.Extra = "example", "example-1", c.extra()
	}
	if role == event.Assistant && c.often(0.38) {
		m.Usage = c.usage()
	}
	c.add(m)
}

// extra returns members that only the provider knows, as long as they are on average.
func (c *conversation) extra() jsontext.Value { return object("raw", c.text(350)) }

// object returns an object with one member.
func object(name, text string) jsontext.Value {
	value, _ := jsontext.AppendQuote(jsontext.Value(`{"`+name+`":`), text) // the text is ASCII
	return append(value, '}')
}

func (c *conversation) usage() event.Usage {
	return event.Usage{InputTokens: c.rand.Int64N(3000), OutputTokens: c.rand.Int64N(500), CacheReadTokens: c.rand.Int64N(100_000)}
}

func (c *conversation) user() { c.say(event.User, event.Text(c.text(c.draw(userTexts)))) }

// turn adds a message of the user and the assistant's work on it.
func (c *conversation) turn() {
	turn, turns := c.every("turn_started"), len(c.ends)
	if turn {
		c.add(event.TurnStart{Index: turns})
	}
	c.user()
	if c.every("reasoning") {
		c.say(event.Assistant, event.Reasoning(c.text(c.draw(reasoningTexts)), ""))
	}
	for range c.draw(callsOfTurn) {
		c.call()
	}
	c.answer()
	if c.often(perTurn("answer") - 1) {
		c.answer()
	}
	if turn {
		c.add(event.TurnCompletion{Status: event.TurnStatusCompleted})
	}
	c.afterTurn(turns)
	c.ends = append(c.ends, len(c.payloads))
}

// every reports whether the turn has an event of a kind that few turns have.
func (c *conversation) every(kind string) bool { return c.often(perTurn(kind)) }

// call adds a call, its result, and reports of the program.
func (c *conversation) call() {
	id := fmt.Sprintf("call_%08d", len(c.payloads))
	parts := []event.Part{event.ToolCall(id, "read_file", object("path", c.text(c.draw(callArguments))))}
	if c.often(0.13) {
		parts = append([]event.Part{event.Text(c.text(c.draw(answerTexts)))}, parts...)
	}
	c.say(event.Assistant, parts...)
	c.step()
	c.say(event.Tool, event.ToolResult(id, "read_file", event.Text(c.text(c.draw(resultTexts)))))
	c.reports()
}

func (c *conversation) answer() {
	c.say(event.Assistant, event.Text(c.text(c.draw(answerTexts))))
	c.step()
	c.reports()
}

// step adds the end of a step to some of the assistant's calls and answers.
func (c *conversation) step() {
	if c.often(shares["step_completed"] / (shares["call"] + shares["answer"])) {
		c.add(event.StepCompletion{Provider: "example", Model: "example-1", Usage: c.usage(), Extra: c.extra()})
	}
}

// reports adds events of the program to some of the assistant's calls and answers.
func (c *conversation) reports() {
	const mean = 2.5 // of programRuns
	if !c.often(shares["program"] / mean / (shares["call"] + shares["answer"])) {
		return
	}
	for range c.draw(programRuns) {
		c.add(report{UUID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", len(c.payloads)), CWD: "/work/project", Text: c.text(c.draw(programData))})
	}
}

// afterTurn adds the events that few turns have.
func (c *conversation) afterTurn(turns int) {
	if c.every("child_requested") {
		id := fmt.Sprintf("child-%d", turns)
		for _, state := range []event.ChildState{event.ChildRequested, event.ChildStarted, event.ChildCompleted} {
			c.add(event.Child{State: state, ChildID: id, ChildSessionID: "session-of-" + id, Task: c.text(90)})
		}
	}
	if c.every("session_updated") {
		c.add(event.Session{Updated: true, Title: c.text(40)})
	}
	if c.every("compaction") {
		c.compaction()
	}
	if c.every("head_moved") {
		c.add(event.HeadMove{To: int64(c.lastEnd())}) // the turn is said anew
	}
}

// compaction replaces all turns before this one.
func (c *conversation) compaction() {
	summary := &event.Message{Role: event.User, Parts: []event.Part{event.Text(c.text(c.draw(summaryTexts)))}}
	c.add(event.Compaction{
		Covers:  event.Stretch{From: 1, To: int64(c.lastEnd())},
		Entries: []event.CompactionEntry{{Message: summary}},
	})
}
