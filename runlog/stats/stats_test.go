package stats_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
)

// Messages, answers and costs without a time have a row of their own, so that the days add up to the
// total.
func TestUndated(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		undated := event.New(event.Message{Role: event.Assistant, Model: "m", Usage: event.Usage{OutputTokens: 4}, Parts: []event.Part{event.Text("done")}})
		undated.Timestamp = time.Unix(0, 0)
		dated := event.UserMessage("go")
		dated.Timestamp = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		paid := event.New(event.Session{Title: "a run", Updated: true}) // a cost of no answer
		paid.Timestamp, paid.Cost = undated.Timestamp, 500
		if _, err := log.Append(t.Context(), "s", eventlog.New(), dated, undated, paid); err != nil {
			t.Fatal(err)
		}
		got, err := stats.Load(t.Context(), log, "s", stats.Options{Days: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		if n := got.ByDay[stats.Undated]; n.Cost != got.Total.Cost || n.Cost != 500 || n.Messages != 1 || n.Usage.OutputTokens != 4 || n.Sessions != 1 || len(got.ByDay) != 2 {
			t.Errorf("%+v", got.ByDay)
		}
	})
}

// The stats of several sessions add up. Shared prefixes and copied events count in
// the session that made them.
func TestStatsCountEachEventOnce(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		ctx := t.Context()
		at := time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC)
		usage := event.Usage{InputTokens: 10, OutputTokens: 4}
		add := func(session string, m event.Message, cost event.Cost) {
			t.Helper()
			e := event.New(m)
			e.Timestamp, e.Cost = at, cost
			if _, err := log.Append(ctx, session, eventlog.Any(), e); err != nil {
				t.Fatal(err)
			}
			at = at.Add(20 * time.Minute)
		}
		says := func(role event.Role, group string, parts ...event.Part) event.Message {
			m := event.Message{Role: role, Group: group, Parts: parts}
			if role == event.Assistant {
				m.Model, m.Usage = "m", usage
			}
			return m
		}
		failed := event.ToolResult("c", "run", event.Text("no"))
		failed.IsError = true
		add("s", says(event.User, "", event.Text("go")), 0)
		add("s", says(event.Assistant, "g", event.Text("one moment")), 5)
		add("s", says(event.Assistant, "g", event.ToolCall("c", "run", nil)), 0)
		add("s", says(event.Tool, "", failed), 0)
		child, err := fork.At(ctx, log, "s", fork.Head(), fork.Options{ID: "fork"})
		if err != nil {
			t.Fatal(err)
		}
		add(child.ID, says(event.Assistant, "", event.Text("done")), 7)
		if _, err := fork.Copy(ctx, log, "s", fork.CopyOptions{ID: "copy"}); err != nil {
			t.Fatal(err)
		}
		add("copy", says(event.Assistant, "", event.Text("done too")), 0)

		var got stats.Stats
		for _, id := range []string{"s", "fork", "copy"} {
			one, err := stats.Load(ctx, log, id)
			if err != nil {
				t.Fatal(err)
			}
			report, err := stats.LoadCost(ctx, log, id)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(report.Own, one.Total.Spend); diff != "" {
				t.Errorf("%s: -cost +stats\n%s", id, diff)
			}
			got.Add(one)
		}
		if got.Total.Messages != 4 || got.Total.Calls != 1 || got.Total.Sessions != 3 || got.Total.Cost != 12 || got.Total.Responses != 3 {
			t.Errorf("total %+v", got.Total)
		}
		if diff := cmp.Diff(map[string]stats.ToolTally{"run": {Calls: 1, Failed: 1, Sessions: 1}}, got.ByTool); diff != "" {
			t.Errorf("tools: -want +got\n%s", diff)
		}
		if diff := cmp.Diff(map[string]projection.Spend{"m": got.Total.Spend}, got.ByModel); diff != "" {
			t.Errorf("models: -want +got\n%s", diff)
		}
		east, err := stats.Load(ctx, log, "s", stats.Options{Days: time.FixedZone("east", 3600)})
		if err != nil {
			t.Fatal(err)
		}
		utc, err := stats.Load(ctx, log, "s")
		if err != nil {
			t.Fatal(err)
		}
		if n := utc.ByDay["2026-03-01"].Events; n != 2 || len(utc.ByDay) != 2 {
			t.Errorf("%d events on the first day of %v", n, utc.ByDay)
		}
		if n := east.ByDay["2026-03-02"].Events; n != 4 || len(east.ByDay) != 1 {
			t.Errorf("%d events on the only day of %v", n, east.ByDay)
		}
	})
}
