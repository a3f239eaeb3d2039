package projection_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
)

// A request must have the same bytes with and without a snapshot; otherwise the
// prompt cache misses. Escapes in strings stay unchanged.
func TestSnapshotsKeepEscapes(t *testing.T) {
	const arguments = `{"a":"\u003cb\u003e caf\u00e9 \/","\u0062":1.0}`
	for name, open := range garden.Stores(t) {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(open(t.TempDir()))
			defer func() { _ = log.Close() }()
			g := &garden.Garden{T: t, Log: log}
			g.Append("s", event.New(event.Message{Role: event.Assistant,
				Parts: []event.Part{event.ToolCall("c1", "run", []byte(arguments))}}))
			v, err := projection.Resume(garden.Bg, log, "s", projection.Session())
			g.Allow(err)
			_, _, err = v.Snapshot(garden.Bg, projection.Request{Body: true})
			g.Allow(err)

			view, err := projection.Load(garden.Bg, log, "s", projection.History())
			g.Allow(err)
			if view.Explain.Parts[0].From.Seq != 2 {
				t.Fatalf("no snapshot was used: %+v", view.Explain)
			}
			entries, err := view.State.Messages()
			g.Allow(err)
			if got := entries[0].Message.Parts[0].Arguments; string(got) != arguments {
				t.Errorf("arguments are %s after a snapshot, not %s", got, arguments)
			}
		})
	}
}

// A snapshot with the highest possible index, from a mistake or an attack, does not
// stop later snapshots.
func TestSnapshotsAfterTheHighestIndex(t *testing.T) {
	for name, open := range garden.Stores(t) {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(open(t.TempDir()))
			defer func() { _ = log.Close() }()
			g := &garden.Garden{T: t, Log: log}
			g.Append("s", event.UserMessage("hello"))
			g.Append("s", event.New(event.Snapshot{Projection: "made-up", Index: math.MaxInt}))
			v, err := projection.Resume(garden.Bg, log, "s", projection.Session())
			g.Allow(err)
			s, taken, err := v.Snapshot(garden.Bg, projection.Request{Body: true})
			if !taken || err != nil || s.Index != math.MaxInt {
				t.Errorf("snapshot %d taken: %v, %v", s.Index, taken, err)
			}
		})
	}
}

// A snapshot with branches in a circle, or with later seqs, does not make a load
// hang.
func TestBranchesInACircle(t *testing.T) {
	for state, used := range map[string]bool{
		`{"tip":4,"moves":[{"seq":3,"to":3}]}`:                  false,
		`{"tip":4,"moves":[{"seq":2,"to":3}]}`:                  false,
		`{"tip":4,"moves":[{"seq":4,"to":2},{"seq":3,"to":1}]}`: false,
		`{"tip":4,"moves":[{"seq":3,"to":-1}]}`:                 false,
		`null`:                                                  false,
		`{"tip":99,"moves":[{"seq":3,"to":1},{"seq":1000,"to":9}],"tips":[2,99]}`: true,
	} {
		for name, open := range garden.Stores(t) {
			log := eventlog.Open(open(t.TempDir()))
			g := &garden.Garden{T: t, Log: log}
			for range 4 {
				g.Append("s", event.UserMessage("hello"))
			}
			head := g.Head("s")
			g.Append("s", event.New(event.Snapshot{Projection: "branches", Version: 1,
				Seq: head.Seq, Hash: head.Hash, State: []byte(`{"branches":{"version":1,"state":` + state + `}}`)}))
			for range 2 {
				g.Append("s", event.New(event.HeadMove{To: 3}))
				g.Append("s", event.UserMessage("again"))
			}
			view, err := projection.Load(garden.Bg, log, "s", projection.Branches())
			if got := err == nil && len(view.Explain.Skipped) == 0; err != nil || got != used {
				t.Errorf("%s: %s: used is %v: %v, %v", name, state, got, view.Explain.Skipped, err)
			}
			if !used && (view.State.Tip != 9 || len(view.State.Orphaned) != 2) {
				t.Errorf("%s: %s: the branches are %+v", name, state, view.State)
			}
			g.Allow(log.Close())
		}
	}
}

// The hash chain does not cover the kept members of a redacted snapshot. An error in
// them is located.
func TestAnErrorInARedactedSnapshotIsLocated(t *testing.T) {
	e := event.New(event.Loss{Reason: "redacted", Extra: []byte(`{"type":"projection_snapshotted","kept":{"index":"first"}}`)})
	e.SessionID, e.Seq = "order-42", 7
	_, err := projection.SnapshotOf(e.Effective())
	if !errors.Is(err, event.ErrInvalidPayload) || !strings.Contains(err.Error(), `projection_snapshotted 7 of "order-42"`) {
		t.Errorf("error %v says not where", err)
	}
}
