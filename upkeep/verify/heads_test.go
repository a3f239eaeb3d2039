package verify_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// A head that was kept elsewhere shows that a session was rolled back or replaced. A
// session without such a change has no defect.
func TestKnownHeads(t *testing.T) {
	l := eventlog.Open(memory.New())
	var heads []event.Head
	for range 3 {
		head, err := l.Append(t.Context(), "a", eventlog.Any(), event.UserMessage("hello"))
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, head)
	}
	want := func(session string, known []event.Head, defects ...int64) {
		t.Helper()
		report, err := verify.Session(t.Context(), l, session, verify.Options{Heads: map[string][]event.Head{session: known}})
		if err != nil {
			t.Fatal(err)
		}
		var seqs []int64
		for _, d := range report.Defects {
			if d.Rule != verify.RuleHistory {
				t.Errorf("session %q: %v", session, d)
			}
			seqs = append(seqs, d.Seq)
		}
		if len(seqs) != len(defects) {
			t.Errorf("session %q: defects at %v, want %v", session, seqs, defects)
			return
		}
		for i := range seqs {
			if seqs[i] != defects[i] {
				t.Errorf("session %q: defects at %v, want %v", session, seqs, defects)
			}
		}
	}
	want("a", heads)
	want("a", []event.Head{heads[0], {Seq: 2, Hash: heads[0].Hash}, {Seq: 9, Hash: heads[2].Hash}}, 2, 9)
	parent, err := l.Event(t.Context(), "a", 2)
	if err != nil {
		t.Fatal(err)
	}
	f := event.New(event.Fork{Parent: "a", Seq: 2, EventID: parent.ID, Hash: heads[1].Hash})
	if _, err := l.Append(t.Context(), "b", eventlog.New(), f); err != nil {
		t.Fatal(err)
	}
	want("b", heads[:2])
	want("b", heads, 3)
	if _, err := erase.Redact(t.Context(), l, "a", []int64{1}, erase.RedactOptions{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	want("a", heads) // a redaction keeps hashes
}
