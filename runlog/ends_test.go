package runlog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/runlog"
)

// turnsOf lists the turns of a session, with their statuses and ops.
func turnsOf(g *garden.Garden, name string) string {
	run, err := runlog.Load(garden.Bg, g.Log, name)
	g.Allow(err)
	var list []string
	for _, x := range run.Turns {
		text := fmt.Sprintf("%d %s%s", x.Index, x.Status, x.StopReason)
		if x.Orphaned {
			text += " orphaned"
		}
		for _, op := range x.Ops {
			text += fmt.Sprintf(", %s %s %d", op.Name, op.Status, len(op.Attempts))
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// The status of a turn follows the rules of docs/FORMAT.md, chapter 8.
func TestHowTurnsEnd(t *testing.T) {
	end := func(turn ulid.ULID, s event.TurnStatus) event.Payload {
		return event.TurnCompletion{TurnID: turn, Status: s, StopReason: "!"}
	}
	effect := event.EffectIntent{Key: "k", Name: "x", Class: event.EffectPure}
	fails := event.EffectCompletion{Key: "k", Error: &event.EffectError{Message: "no"}}
	again := fails
	again.RetryAt = time.Unix(1, 0)
	ask := event.ApprovalRequest{InterruptID: "i"}
	for _, tt := range []struct {
		name   string
		events func(turn ulid.ULID) []event.Payload // after a turn_started
		want   string
	}{
		{"open", func(ulid.ULID) []event.Payload { return nil }, "0 "},
		{"completed, then failed", func(turn ulid.ULID) []event.Payload {
			return []event.Payload{end(turn, "completed"), end(turn, "failed")}
		}, "0 completed!"},
		{"the end of an unknown turn", func(ulid.ULID) []event.Payload { return []event.Payload{end(event.NewID(), "completed")} }, "0 "},
		{"another turn", func(ulid.ULID) []event.Payload { return []event.Payload{event.TurnStart{Index: 1}} }, "0 interrupted; 1 "},
		{"a late end", func(turn ulid.ULID) []event.Payload {
			return []event.Payload{event.TurnStart{Index: 1}, end(turn, "completed")}
		}, "0 interrupted; 1 "},
		{"a retry", func(turn ulid.ULID) []event.Payload {
			return []event.Payload{end(turn, "failed"), event.HeadMove{To: 0}, event.HeadMove{To: 1}}
		}, "0 "},
		{"a retry that ends", func(turn ulid.ULID) []event.Payload {
			return []event.Payload{end(turn, "failed"), event.HeadMove{To: 0}, event.HeadMove{To: 1}, end(turn, "completed")}
		}, "0 completed!"},
		{"a retry that failed", func(turn ulid.ULID) []event.Payload {
			return []event.Payload{end(turn, "interrupted"), event.HeadMove{To: 1}, end(turn, "failed"), event.HeadMove{To: 0}}
		}, "0 failed! orphaned"},
		{"an abort", func(ulid.ULID) []event.Payload { return []event.Payload{event.Abort{}} }, "0 aborted"},
		{"an abort beats a late finish", func(turn ulid.ULID) []event.Payload {
			return []event.Payload{event.Abort{TurnID: turn}, end(turn, "completed")}
		}, "0 aborted!"},
		{"an abort after the end", func(turn ulid.ULID) []event.Payload {
			return []event.Payload{end(turn, "completed"), event.Abort{TurnID: turn}}
		}, "0 completed!"},
		{"an abort of another turn", func(ulid.ULID) []event.Payload { return []event.Payload{event.Abort{TurnID: event.NewID()}} }, "0 "},

		{"an attempt that ended", func(ulid.ULID) []event.Payload { return []event.Payload{effect, again} }, "0 , x open 1"},
		{"its result", func(ulid.ULID) []event.Payload {
			return []event.Payload{effect, again, effect, event.EffectCompletion{Key: "k"}, fails}
		}, "0 , x ok 1"},
		{"two answers", func(ulid.ULID) []event.Payload {
			return []event.Payload{ask, event.ApprovalResolution{InterruptID: "i", Decision: event.Denied}, event.ApprovalResolution{InterruptID: "i", Decision: event.Approved}}
		}, "0 , approval failed 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
				do(g, tt.events(do(g, event.TurnStart{}))...)
				garden.Same(t, "turns", tt.want, turnsOf(g, "s"))
			})
		})
	}
}

// A fork and a copy do not inherit an abort.
func TestAnAbortOfTheOriginal(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		do(g, event.TurnStart{}, event.Abort{})
		_, err := fork.At(garden.Bg, g.Log, "s", fork.AtSeq(2), fork.Options{ID: "fork", Force: true})
		g.Allow(err)
		_, err = fork.Copy(garden.Bg, g.Log, "s", fork.CopyOptions{ID: "copy"})
		g.Allow(err)
		for name, want := range map[string]string{"s": "0 aborted", "fork": "0 ", "copy": "0 "} {
			garden.Same(t, name, want, turnsOf(g, name))
		}
	})
}
