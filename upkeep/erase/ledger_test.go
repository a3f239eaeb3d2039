package erase_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
)

// A redaction names the ledger that has lines about the erased events, and no other one.
func TestLedgersAreNamed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	log := testkit.Open(t, memory.New())
	paid := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(confided)}, Usage: event.Usage{OutputTokens: 3}})
	paid.Cost = 7
	for _, session := range []string{"a", "b"} {
		if _, err := log.Append(ctx, session, eventlog.New(), event.UserMessage("hello"), paid); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Append(ctx, "a", eventlog.Any(), event.New(event.AccountingFlush{Ledger: "spent.jsonl", Through: 2, Total: 7})); err != nil {
		t.Fatal(err)
	}
	late, err := log.Append(ctx, "a", eventlog.Any(), event.UserMessage("later"))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		session string
		seq     int64
		named   bool
	}{{"a", 2, true}, {"b", 2, false}, {"a", late.Seq, false}} {
		done, err := erase.Redact(ctx, log, x.session, []int64{x.seq}, erase.RedactOptions{Reason: "test", DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if named := len(done.Retained) == 1 && done.Retained[0].Where == `ledger "spent.jsonl", lines of session "`+x.session+`"`; named != x.named || !named && len(done.Retained) > 0 {
			t.Errorf("event %d of %q: %+v", x.seq, x.session, done.Retained)
		}
	}
}
