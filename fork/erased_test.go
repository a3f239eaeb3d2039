package fork_test

import (
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/upkeep/erase"
)

// A redacted event of a copy still names its original and marks inherited cost. The
// metadata keeps no content.
func TestARedactedCopyKnowsItsOriginal(t *testing.T) {
	everywhere(t, func(t *bench) {
		spent := assistant("the secret")
		spent.Cost = event.Dollar
		spent.Metadata = []byte(`{"inherited":"the secret","fork_origin":"the secret","note":"the secret"}`)
		t.each("s", user("one"), spent)
		_, err := fork.Copy(t.ctx, t.log, "s", fork.CopyOptions{ID: "c"})
		t.must(err)
		_, err = erase.Redact(t.ctx, t.log, "c", []int64{1, 2}, erase.RedactOptions{Reason: ""})
		t.must(err)
		_, err = erase.Redact(t.ctx, t.log, "s", []int64{2}, erase.RedactOptions{Reason: ""})
		t.must(err)
		for i, e := range all(t, t.log, "c")[:2] {
			origin, ok := e.Origin()
			inherited, _ := e.MetadataValue("inherited")
			if !ok || origin.Session != "s" || origin.Seq != e.Seq || origin.ID.IsZero() || string(inherited) != "true" {
				t.Errorf("event %d is a copy of %+v, inherited %s: %s", e.Seq, origin, inherited, e.Line())
			}
			if _, ok := e.MetadataValue("copy_of"); ok != (i == 0) {
				t.Errorf("event %d says that it begins a copy: %v", e.Seq, ok)
			}
		}
		if e := all(t, t.log, "s")[1]; string(e.Kept()) != `{"role":"assistant"}` {
			t.Errorf("kept of what is no copy: %s", e.Kept())
		}
		tree, err := fork.Copy(t.ctx, t.log, "c")
		t.must(err)
		t.sound("c")
		t.sound(tree.ID)
	})
}

// Erasing content in a copy finds the copies of that copy too.
func TestRedactionFindsACopyOfARedactedCopy(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.each("s", user("one"), user("the secret"))
		for _, name := range []string{"s", "c"} {
			_, err := fork.Copy(t.ctx, t.log, name, fork.CopyOptions{ID: map[string]string{"s": "c", "c": "d"}[name]})
			t.must(err)
		}
		_, err := erase.Redact(t.ctx, t.log, "c", []int64{2}, erase.RedactOptions{Reason: ""})
		t.must(err)
		done, err := erase.Redact(t.ctx, t.log, "s", []int64{2}, erase.RedactOptions{Reason: ""})
		t.must(err)
		if len(done.Untouched) != 1 || done.Untouched[0].Session != "d" {
			t.Errorf("untouched: %+v", done.Untouched)
		}
	})
}

// A call whose message was redacted before the copy is pending in the copy too.
func TestACallOfAnErasedMessageIsPendingInACopy(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.each("s", user("one"), calls("a", "b"), result("a"))
		_, err := erase.Redact(t.ctx, t.log, "s", []int64{2}, erase.RedactOptions{Reason: ""})
		t.must(err)
		_, err = fork.Copy(t.ctx, t.log, "s", fork.CopyOptions{ID: "c"})
		t.must(err)
		if broken, ok := all(t, t.log, "c")[2].MetadataValue("broken"); ok {
			t.Errorf("the copy's result is marked %s", broken)
		}
		for _, log := range []*eventlog.Log{t.log, eventlog.Open(t.log.Store())} {
			if _, err := log.Append(t.ctx, "c", eventlog.Any(), result("x")); !errors.Is(err, event.OrphanResult) {
				t.Errorf("a result of no call: %v", err)
			}
		}
		cold := eventlog.Open(t.log.Store())
		_, err = cold.Append(t.ctx, "c", eventlog.Any(), result("b"))
		t.must(err)
		t.sound("c")
	})
}
