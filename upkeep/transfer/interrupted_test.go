package transfer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// failing is a store whose rewrites fail.
type failing struct {
	*memory.Store
	fails bool
}

var errFails = errors.New("rewrites fail")

func (s *failing) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	if s.fails {
		return errFails
	}
	return s.Store.Rewrite(ctx, session, expect, replace, add)
}

// A conversion of several writes that is interrupted before the last one leaves a sound
// session, and a second one completes the redaction: the lines are replaced together with
// the event that names them.
func TestInterruptedConversionOfARedaction(t *testing.T) {
	ctx := t.Context()
	src := eventlog.Open(memory.New())
	store := &failing{Store: memory.New()}
	dst := eventlog.Open(store)
	convert := func() (failed error) {
		for _, err := range transfer.Convert(ctx, dst, src, transfer.Options{ApplyRedactions: true}) {
			failed = errors.Join(failed, err)
		}
		return failed
	}
	if _, err := src.Append(ctx, "a", eventlog.New(), event.UserMessage("hello"), event.UserMessage("hunter2")); err != nil {
		t.Fatal(err)
	}
	if err := convert(); err != nil {
		t.Fatal(err)
	}
	for range 30 { // more than one write takes
		if _, err := src.Append(ctx, "a", eventlog.Any(), event.UserMessage(strings.Repeat("long ", 40_000))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := erase.Redact(ctx, src, "a", []int64{2}); err != nil {
		t.Fatal(err)
	}
	store.fails = true
	if err := convert(); !errors.Is(err, errFails) {
		t.Fatal(err)
	}
	check := func(wantRedacted bool) {
		t.Helper()
		if report, err := verify.Session(ctx, dst, "a"); err != nil || len(report.Defects) > 0 {
			t.Fatal(report.Defects, err)
		}
		if e, err := dst.Event(ctx, "a", 2); err != nil || e.Redacted() != wantRedacted {
			t.Fatalf("redacted: %v, %v", e.Redacted(), err)
		}
	}
	if head, err := dst.Head(ctx, "a"); err != nil || head.Seq < 10 {
		t.Fatalf("the conversion was not interrupted in its middle: %v, %v", head, err)
	}
	check(false)
	store.fails = false
	if err := convert(); err != nil {
		t.Fatal(err)
	}
	check(true)
}
