package fork_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

// A missing blob does not stop Branches, Rewind, Recover and At: they do not read
// the blob.
func TestMissingBody(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 1) // 1–6
		note := event.Event{ID: event.NewID(), Type: "other:note", Data: []byte(`"` + strings.Repeat("x", 300<<10) + `"`)}
		t.add("a", note) // 7
		t.turns("a", 1, 1)
		e, err := t.log.Event(t.ctx, "a", 7)
		t.must(err)
		digest, _, ok := e.Spilled()
		if !ok {
			t.Fatal("the note is not spilled")
		}
		blobs, _ := eventlog.As[eventlog.Blobs](t.log.Store())
		t.must(blobs.RemoveBlobs(t.ctx, []event.Digest{digest}))
		if _, err := t.log.Event(t.ctx, "a", 7); err == nil {
			t.Error("the body is still there")
		}
		if got := t.where("a", fork.BeforeTurn(0)); got != 0 {
			t.Errorf("turn 0 begins behind %d", got)
		}
		_, err = fork.At(t.ctx, t.log, "a", fork.AtSeq(9), fork.Options{ID: "b", Force: true})
		t.must(err)
		t.rewind("a", fork.AtTurn(0))
		branches, err := fork.Branches(t.ctx, t.log, "a", false)
		t.must(err)
		if len(branches) != 2 || branches[1].Tip != 13 {
			t.Errorf("the branches are %+v", branches)
		}
		_, err = fork.Recover(t.ctx, t.log, "a")
		t.must(err)
	})
}
