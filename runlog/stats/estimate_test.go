package stats_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/memory"
)

// m costs a dollar a token; other models have no price.
const dollarATokens = `{"models":{"m":[{"input":1000000,"output":1000000}]}}`

var firstTime = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// answer is an answer of a model, a piece of a group if group is not empty.
func answer(model, group string, cost event.Cost, tokens int64) event.Event {
	e := event.New(event.Message{Role: event.Assistant, Model: model, Group: group, Usage: event.Usage{OutputTokens: tokens},
		Parts: []event.Part{event.Text("yes")}})
	e.Cost = cost
	return e
}

// logOf is a log with a session of these events, an hour apart.
func logOf(t *testing.T, events ...event.Event) *eventlog.Log {
	t.Helper()
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { _ = log.Close() })
	for i, e := range events {
		e.Timestamp = firstTime.Add(time.Duration(i) * time.Hour)
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), e); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func TestEstimates(t *testing.T) {
	table, err := prices.Read(strings.NewReader(dollarATokens))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		events    []event.Event
		cost      event.Cost
		estimate  event.Cost
		estimated int
		unpriced  int
	}{
		"an answer without a cost": {[]event.Event{answer("m", "", 0, 2)}, 0, 2 * event.Dollar, 1, 1},
		"a cost of the log":        {[]event.Event{answer("m", "", event.Dollar, 2)}, event.Dollar, 0, 0, 0},
		"a model without a price":  {[]event.Event{answer("x", "", 0, 2)}, 0, 0, 0, 1},
		"pieces of an answer": {[]event.Event{answer("m", "g", 0, 2), answer("m", "g", 0, 3)},
			0, 3 * event.Dollar, 1, 1},
		"a later cost takes it back": {[]event.Event{answer("m", "g", 0, 2), answer("m", "g", event.Dollar, 2)},
			event.Dollar, 0, 0, 0},
		"both apart": {[]event.Event{answer("m", "", 0, 2), answer("m", "", 5*event.Dollar, 9)},
			5 * event.Dollar, 2 * event.Dollar, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			log := logOf(t, test.events...)
			report, err := stats.LoadCost(t.Context(), log, "s", stats.CostOptions{Prices: table})
			if err != nil {
				t.Fatal(err)
			}
			want := projection.Spend{Cost: test.cost, Estimate: test.estimate, Estimated: test.estimated, Unpriced: test.unpriced,
				Usage: report.Own.Usage, Responses: report.Own.Responses}
			counts, err := stats.Load(t.Context(), log, "s", stats.Options{Prices: table})
			if err != nil {
				t.Fatal(err)
			}
			tree, err := stats.LoadTreeCost(t.Context(), log, "s", stats.CostOptions{Prices: table})
			if err != nil {
				t.Fatal(err)
			}
			for view, got := range map[string]projection.Spend{"own": report.Own, "path": report.Path, "stats": counts.Total.Spend, "tree": tree.Total} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: -want +got\n%s", view, diff)
				}
			}
			bare, err := stats.LoadCost(t.Context(), log, "s")
			if err != nil || bare.Own.Estimate != 0 || bare.Own.Estimated != 0 {
				t.Errorf("without prices: %+v, %v", bare.Own, err)
			}
		})
	}
}

// Stats count the events of a time, and the spend of a model.
func TestStatsOfAPart(t *testing.T) {
	log := logOf(t, answer("m", "", event.Dollar, 2), answer("x", "", 3*event.Dollar, 4))
	second := firstTime.Add(time.Hour)
	for name, test := range map[string]struct {
		opts   stats.Options
		events int64
		cost   event.Cost
	}{
		"all":     {stats.Options{}, 2, 4 * event.Dollar},
		"since":   {stats.Options{Since: second}, 1, 3 * event.Dollar},
		"until":   {stats.Options{Until: second}, 1, event.Dollar},
		"nothing": {stats.Options{Since: second.Add(time.Hour)}, 0, 0},
		"model":   {stats.Options{Model: func(m string) bool { return m == "x" }}, 2, 3 * event.Dollar},
	} {
		s, err := stats.Load(t.Context(), log, "s", test.opts)
		if err != nil {
			t.Fatal(err)
		}
		if s.Total.Events != test.events || s.Total.Cost != test.cost {
			t.Errorf("%s: %d events, cost %v", name, s.Total.Events, s.Total.Cost)
		}
	}
}
