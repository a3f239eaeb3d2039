package stats_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/upkeep/erase"
)

// priced is a payload whose event has a cost, in nano-dollars.
type priced struct {
	event.Payload
	cost event.Cost
}

// spend appends payloads, unchecked as an import would.
func spend(g *garden.Garden, name string, payloads ...event.Payload) {
	g.T.Helper()
	for _, p := range payloads {
		var cost event.Cost
		if with, ok := p.(priced); ok {
			p, cost = with.Payload, with.cost
		}
		e := event.New(p)
		e.Cost = cost
		_, err := g.Log.Append(garden.Bg, name, eventlog.Any().Lenient(), e)
		g.Allow(err)
	}
}

// shortly formats spend: tokens out, answers, answers without a cost, cost, answers without
// tokens and cost.
func shortly(s projection.Spend) string {
	text := fmt.Sprintf("%d tokens, %d answers, %d unpriced, %d", s.Usage.OutputTokens, s.Responses, s.Unpriced, int64(s.Cost))
	if s.Unknown > 0 {
		text += fmt.Sprintf(", %d unknown", s.Unknown)
	}
	return text
}

func shortlyAll(parts map[string]projection.Spend) string {
	all := map[string]string{}
	for name, s := range parts {
		all[name] = shortly(s)
	}
	text, _ := json.Marshal(all, json.Deterministic(true))
	return string(text)
}

func used(n int64) event.Usage { return event.Usage{OutputTokens: n} }

// answered is an answer of model m.
func answered(tokens int64, group, response string) event.Message {
	m := says(event.Text("yes"))
	m.Model, m.Group, m.ResponseID, m.Usage = "m", group, response, used(tokens)
	return m
}

func stepEnds(tokens int64, response string) event.StepCompletion {
	return event.StepCompletion{Step: 1, Usage: used(tokens), ResponseID: response}
}

func effect(kind string) event.EffectIntent {
	return event.EffectIntent{Key: "k", Kind: kind, Class: event.EffectPure}
}

// Each answer of a model counts once, in any number of events.
func TestUsageRules(t *testing.T) {
	step := event.StepStart{Step: 1, Model: "m"}
	done := event.EffectCompletion{Key: "k", Usage: used(5)}
	ends := event.TurnCompletion{Status: event.TurnStatusCompleted, Usage: used(9)}
	for _, tt := range []struct {
		name   string
		events []event.Payload
		want   string
	}{
		{"no answer", []event.Payload{asks("hello")}, "0 tokens, 0 answers, 0 unpriced, 0"},
		{"an answer", []event.Payload{answered(3, "", "")}, "3 tokens, 1 answers, 1 unpriced, 0"},
		{"two answers", []event.Payload{answered(3, "", ""), answered(4, "", "")}, "7 tokens, 2 answers, 2 unpriced, 0"},
		{"the last usage of a group", []event.Payload{answered(3, "g", ""), answered(8, "g", ""), answered(5, "g", "")}, "5 tokens, 1 answers, 1 unpriced, 0"},
		{"a piece of a group without usage", []event.Payload{answered(3, "g", ""), answered(0, "g", "")}, "3 tokens, 1 answers, 1 unpriced, 0"},
		{"two groups, mixed", []event.Payload{answered(3, "g", ""), answered(4, "h", ""), answered(5, "g", "")}, "9 tokens, 2 answers, 2 unpriced, 0"},
		{"one response", []event.Payload{answered(3, "", "r"), answered(5, "", "r")}, "5 tokens, 1 answers, 1 unpriced, 0"},
		{"two responses", []event.Payload{answered(3, "", "r"), answered(5, "", "q")}, "8 tokens, 2 answers, 2 unpriced, 0"},
		{"costs of pieces add up", []event.Payload{priced{answered(3, "g", ""), 10}, priced{answered(5, "g", ""), 1}}, "5 tokens, 1 answers, 0 unpriced, 11"},
		{"a price without tokens", []event.Payload{priced{answered(0, "", ""), 10}}, "0 tokens, 1 answers, 0 unpriced, 10"},
		{"a question that costs", []event.Payload{priced{asks("hello"), 10}}, "0 tokens, 0 answers, 0 unpriced, 10"},

		{"answers without tokens", []event.Payload{answered(0, "", ""), answered(0, "", "r")}, "0 tokens, 2 answers, 0 unpriced, 0, 2 unknown"},
		{"pieces without tokens", []event.Payload{answered(0, "g", ""), answered(0, "g", "")}, "0 tokens, 1 answers, 0 unpriced, 0, 1 unknown"},
		{"tokens in a later piece", []event.Payload{answered(0, "g", ""), answered(4, "g", "")}, "4 tokens, 1 answers, 1 unpriced, 0"},
		{"tokens after each answer", []event.Payload{answered(0, "g", ""), stepEnds(2, ""), answered(0, "h", ""), stepEnds(3, "")}, "5 tokens, 2 answers, 2 unpriced, 0"},
		{"the tokens of a session", []event.Payload{answered(0, "g", ""), answered(0, "h", ""), stepEnds(7, "")}, "7 tokens, 2 answers, 1 unpriced, 0, 1 unknown"},
		{"the cost of a session", []event.Payload{answered(3, "g", ""), priced{stepEnds(0, ""), 9}}, "3 tokens, 1 answers, 1 unpriced, 9"},
		{"the cost of an answer without tokens", []event.Payload{answered(0, "g", ""), priced{stepEnds(0, ""), 9}}, "0 tokens, 1 answers, 0 unpriced, 9, 1 unknown"},
		{"the tokens of another agent", []event.Payload{answered(0, "g", ""), event.StepCompletion{Agent: "user", Usage: used(7)}}, "7 tokens, 2 answers, 1 unpriced, 0, 1 unknown"},
		{"a message of the program of a turn", []event.Payload{effect("tool"), says(event.Text("done"))}, "0 tokens, 0 answers, 0 unpriced, 0"},
		{"an answer of a turn without tokens", []event.Payload{effect("tool"), answered(0, "", "")}, "0 tokens, 1 answers, 0 unpriced, 0, 1 unknown"},

		{"a message of a step", []event.Payload{step, answered(3, "", ""), stepEnds(0, "")}, "3 tokens, 1 answers, 1 unpriced, 0"},
		{"a step replaces its message", []event.Payload{step, answered(3, "", ""), stepEnds(6, "")}, "6 tokens, 1 answers, 1 unpriced, 0"},
		{"a step replaces the newest answer", []event.Payload{step, answered(3, "", "r"), answered(4, "", "q"), stepEnds(6, "")}, "9 tokens, 2 answers, 2 unpriced, 0"},
		{"a step names its response", []event.Payload{step, answered(3, "", "r"), answered(4, "", "q"), stepEnds(6, "r")}, "10 tokens, 2 answers, 2 unpriced, 0"},
		{"a step leaves the answer before it", []event.Payload{answered(3, "", ""), step, stepEnds(6, "")}, "9 tokens, 2 answers, 2 unpriced, 0"},
		{"a step alone", []event.Payload{stepEnds(6, "")}, "6 tokens, 1 answers, 1 unpriced, 0"},
		{"two steps", []event.Payload{step, answered(1, "", ""), stepEnds(2, ""), step, answered(3, "", ""), stepEnds(4, "")}, "6 tokens, 2 answers, 2 unpriced, 0"},
		{"a step prices its answer", []event.Payload{step, answered(3, "", ""), priced{stepEnds(0, ""), 7}}, "3 tokens, 1 answers, 0 unpriced, 7"},

		{"a call of a tool that used tokens", []event.Payload{effect("tool"), done}, "5 tokens, 1 answers, 1 unpriced, 0"},
		{"a tool besides an answer", []event.Payload{effect("tool"), answered(3, "", ""), done}, "8 tokens, 2 answers, 2 unpriced, 0"},
		{"a call of the model is its answer", []event.Payload{effect("model"), answered(3, "", ""), done}, "3 tokens, 1 answers, 1 unpriced, 0"},
		{"a call of the model without an answer", []event.Payload{answered(3, "", ""), effect("llm"), done}, "8 tokens, 2 answers, 2 unpriced, 0"},
		{"an effect that nobody intended", []event.Payload{done}, "5 tokens, 1 answers, 1 unpriced, 0"},
		{"an effect that only costs", []event.Payload{effect("mail"), priced{event.EffectCompletion{Key: "k"}, 4}}, "0 tokens, 0 answers, 0 unpriced, 4"},

		{"a turn that is all there is", []event.Payload{event.TurnStart{}, ends}, "9 tokens, 1 answers, 1 unpriced, 0"},
		{"a turn whose answers count", []event.Payload{event.TurnStart{}, answered(3, "", ""), ends}, "3 tokens, 1 answers, 1 unpriced, 0"},
		{"a turn after one whose answers count", []event.Payload{event.TurnStart{}, answered(3, "", ""), ends, event.TurnStart{}, ends}, "12 tokens, 2 answers, 2 unpriced, 0"},

		{"a child without a session", []event.Payload{event.Child{State: event.ChildProgressed, ChildID: "c", Usage: used(2)},
			event.Child{State: event.ChildCompleted, ChildID: "c", Usage: used(6)}}, "6 tokens, 1 answers, 1 unpriced, 0"},
		{"two children", []event.Payload{event.Child{State: event.ChildCompleted, ChildID: "c", Usage: used(2)},
			event.Child{State: event.ChildCompleted, ChildID: "d", Usage: used(6)}}, "8 tokens, 2 answers, 2 unpriced, 0"},
		{"a child with a session of its own", []event.Payload{priced{event.Child{State: event.ChildCompleted, ChildID: "c", ChildSessionID: "x", Usage: used(2)}, 3}},
			"0 tokens, 0 answers, 0 unpriced, 3"},

		{"what was rewound", []event.Payload{asks("hello"), answered(3, "", ""), event.HeadMove{To: 1}, answered(4, "", "")}, "7 tokens, 2 answers, 2 unpriced, 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
				half := len(tt.events) / 2
				spend(g, "s", tt.events[:half]...)
				if half > 0 {
					g.Snapshot("s", projection.Of("", projection.Usage()), true)
				}
				spend(g, "s", moved(tt.events[half:], half > 0)...)
				spends(g, "s", tt.want)
				for _, e := range g.Lineage("s") { // redaction keeps what counts
					_, err := erase.Redact(garden.Bg, g.Log, "s", []int64{e.Seq}, erase.RedactOptions{Reason: "test"})
					g.Allow(err, event.ErrInvalidType)
				}
				spends(g, "s", tt.want)
				for name, want := range map[string]string{"copy": "0 tokens, 0 answers, 0 unpriced, 0", "fork": "0 tokens, 0 answers, 0 unpriced, 0"} {
					if name == "copy" {
						_, err := fork.Copy(garden.Bg, g.Log, "s", fork.CopyOptions{ID: name})
						g.Allow(err)
					} else {
						_, err := fork.At(garden.Bg, g.Log, "s", fork.Head(), fork.Options{ID: name, Force: true})
						g.Allow(err)
					}
					spends(g, name, want)
				}
			})
		})
	}
}

// moved shifts seqs in tree events by one if a snapshot precedes them.
func moved(events []event.Payload, snapshot bool) []event.Payload {
	events = slices.Clone(events)
	for i, p := range events {
		if m, ok := p.(event.HeadMove); ok && snapshot && m.To > 1 {
			m.To++
			events[i] = m
		}
	}
	return events
}

// spends checks the spend of a session's own events, counted in all ways.
func spends(g *garden.Garden, name, want string) {
	g.T.Helper()
	usage, err := projection.Load(garden.Bg, g.Log, name, projection.Usage())
	g.Allow(err)
	garden.Same(g.T, "usage of "+name, want, shortly(usage.State.Total))
	cost, err := stats.LoadCost(garden.Bg, g.Log, name)
	g.Allow(err)
	garden.Same(g.T, "cost of "+name, want, shortly(cost.Own))
	run, err := runlog.Load(garden.Bg, g.Log, name, runlog.Options{NoChildren: true})
	g.Allow(err)
	garden.Same(g.T, "run of "+name, want, shortly(run.Totals.Own))
}

func TestUsageByModelAgentAndTurn(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		by := func(model string, tokens int64) event.Message {
			m := answered(tokens, "", "")
			m.Model = model
			return m
		}
		spend(g, "s", event.Session{Agent: "ada"}, priced{by("m", 1), 5}) // 1, 2
		spend(g, "s", asks("one"), event.TurnStart{Index: 0}, by("m", 2), event.Handoff{ToAgent: "bob"}, priced{by("n", 4), 7},
			event.TurnCompletion{Status: event.TurnStatusCompleted}) // 3 to 8
		spend(g, "s", asks("two"), event.TurnStart{Index: 1, Agent: "eve"}, by("m", 8))             // 9 to 11
		spend(g, "s", event.HeadMove{To: 8}, asks("again"), event.TurnStart{Index: 1}, by("m", 16)) // 12 to 15
		c, err := stats.LoadCost(garden.Bg, g.Log, "s")
		g.Allow(err)
		garden.Same(t, "own", "31 tokens, 5 answers, 3 unpriced, 12", shortly(c.Own))
		garden.Same(t, "orphaned", "8 tokens, 1 answers, 1 unpriced, 0", shortly(c.Orphaned))
		garden.Same(t, "path", "23 tokens, 4 answers, 2 unpriced, 12", shortly(c.Path))
		garden.Same(t, "by model", `{"m":"27 tokens, 4 answers, 3 unpriced, 5","n":"4 tokens, 1 answers, 0 unpriced, 7"}`, shortlyAll(c.ByModel))
		garden.Same(t, "by agent", `{"ada":"3 tokens, 2 answers, 1 unpriced, 5","bob":"4 tokens, 1 answers, 0 unpriced, 7","eve":"24 tokens, 2 answers, 2 unpriced, 0"}`,
			shortlyAll(c.ByAgent))
		var turns []string
		for _, x := range c.Turns {
			turns = append(turns, fmt.Sprintf("%d at %d, %v: %s", x.Index, x.Seq, x.Orphaned, shortly(x.Spend)))
		}
		garden.Same(t, "turns", []string{"0 at 3, false: 6 tokens, 2 answers, 1 unpriced, 7", "1 at 9, true: 8 tokens, 1 answers, 1 unpriced, 0",
			"1 at 13, false: 16 tokens, 1 answers, 1 unpriced, 0"}, turns)
		_, err = fork.At(garden.Bg, g.Log, "s", fork.Head(), fork.Options{ID: "f", Force: true})
		g.Allow(err)
		spend(g, "f", by("m", 32))
		f, err := stats.LoadCost(garden.Bg, g.Log, "f")
		g.Allow(err)
		garden.Same(t, "a fork's own", "32 tokens, 1 answers, 1 unpriced, 0", shortly(f.Own))
		garden.Same(t, "a fork's path", "55 tokens, 5 answers, 3 unpriced, 12", shortly(f.Path))
		garden.Same(t, "inherited", shortly(c.Path), shortly(f.Inherited))
		tree, err := stats.LoadTreeCost(garden.Bg, g.Log, "s")
		g.Allow(err)
		garden.Same(t, "the tree", "63 tokens, 6 answers, 4 unpriced, 12", shortly(tree.Total))
	})
}
