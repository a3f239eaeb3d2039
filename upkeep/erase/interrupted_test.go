package erase_test

import (
	"context"
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// stopping is a store whose rewrites fail after some successful rewrites.
type stopping struct {
	*jsonl.Store
	works int
}

var errStopped = errors.New("stopped")

func (s *stopping) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	if s.works == 0 {
		return errStopped
	}
	s.works--
	return s.Store.Rewrite(ctx, session, expect, replace, add)
}

// A redaction that also erases a snapshot body in a fork may be interrupted
// between the two sessions: asked for again, it does the rest.
func TestInterruptedRedaction(t *testing.T) {
	ctx := context.Background()
	for works := range 3 {
		s := &stopping{Store: jsonl.New(t.TempDir()), works: works}
		l := eventlog.Open(s)
		defer l.Close()
		secret := event.UserMessage("hunter2")
		head, err := l.Append(ctx, "parent", eventlog.New(), secret)
		if err != nil {
			t.Fatal(err)
		}
		fork := event.New(event.Fork{Parent: "parent", Seq: 1, EventID: secret.ID, Hash: head.Hash})
		snapshot := event.Event{Type: event.ProjectionSnapshotted, Data: []byte(`{"projection":"p","version":1,` +
			`"snapshot_id":"0190a5a4-7d4c-7000-8000-000000000001","state_digest":"` + string(event.DigestOf([]byte("{}"))) +
			`","index":0,"turn_index":0,"trigger":"manual","seq":2,"state":{"said":"hunter2"}}`)}
		if _, err := l.Append(ctx, "child", eventlog.New(), fork, snapshot); err != nil {
			t.Fatal(err)
		}
		if _, err := erase.Redact(ctx, l, "parent", []int64{1}, erase.RedactOptions{Reason: "a password"}); (err != nil) != (works < 2) || err != nil && !errors.Is(err, errStopped) {
			t.Fatalf("after %d rewrites: %v", works, err)
		}
		s.works = 9
		if _, err := erase.Redact(ctx, l, "parent", []int64{1}, erase.RedactOptions{Reason: "a password"}); err != nil {
			t.Fatalf("after %d rewrites, again: %v", works, err)
		}
		for session, seq := range map[string]int64{"parent": 1, "child": 3} {
			if e, err := l.Event(ctx, session, seq); err != nil || !e.Redacted() {
				t.Errorf("after %d rewrites: event %d of %q is there (%v)", works, seq, session, err)
			}
			if report, err := verify.Session(ctx, l, session); err != nil || len(report.Defects) > 0 {
				t.Errorf("after %d rewrites: %v, %v", works, report.Defects, err)
			}
		}
	}
}
