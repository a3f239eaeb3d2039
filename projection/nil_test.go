package projection_test

import (
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Nil arguments are errors, never panics.
func TestNilArguments(t *testing.T) {
	log := plainLog(t)
	newStory(t, log, "s").exchange("a")
	ctx := t.Context()
	var none *eventlog.Log
	var live *projection.Live
	history := projection.Of("", projection.History())
	snapshots := func(log *eventlog.Log) (err error) {
		for _, err = range projection.Snapshots(ctx, log, "s", false) {
			break
		}
		return err
	}
	for _, tt := range []struct {
		name string
		call func() error
		want error
	}{
		{"Load", func() error { _, err := projection.Load(ctx, none, "s", projection.History()); return err }, eventlog.ErrClosed},
		{"Load without Apply", func() error {
			_, err := projection.Load(ctx, log, "s", projection.Projection[int]{Name: "shop:orders"})
			return err
		}, projection.ErrInvalidSet},
		{"LoadSet", func() error { _, err := projection.LoadSet(ctx, none, "s", history); return err }, eventlog.ErrClosed},
		{"LoadSet of no set", func() error { _, err := projection.LoadSet(ctx, log, "s", projection.Set{}); return err }, projection.ErrInvalidSet},
		{"LoadSet of a nil part", func() error { _, err := projection.LoadSet(ctx, log, "s", projection.Of("a:b", nil)); return err }, projection.ErrInvalidSet},
		{"Resume", func() error { _, err := projection.Resume(ctx, none, "s", history); return err }, eventlog.ErrClosed},
		{"LoadPending", func() error { _, err := projection.LoadPending(ctx, none, "s"); return err }, eventlog.ErrClosed},
		{"PendingOf", func() error { _, err := projection.PendingOf(ctx, log, nil); return err }, projection.ErrInvalidSet},
		{"PendingOf a nil Live", func() error { _, err := projection.PendingOf(ctx, log, live); return err }, projection.ErrInvalidSet},
		{"StateJSON", func() error { _, err := projection.StateJSON(nil, "history"); return err }, projection.ErrUnknownProjection},
		{"Compact", func() error { _, err := projection.Compact(ctx, none, "s", event.Compaction{Summary: "x"}); return err }, eventlog.ErrClosed},
		{"CheckCompaction", func() error { return projection.CheckCompaction(ctx, none, "s", event.Compaction{Summary: "x"}) }, eventlog.ErrClosed},
		{"SetState", func() error { _, _, err := projection.SetState(ctx, none, "s", "n", 1, nil); return err }, eventlog.ErrClosed},
		{"Patch", func() error {
			_, _, err := projection.Patch(ctx, none, "s", event.CustomPatch{Name: "n", Patch: []byte(`[]`)})
			return err
		}, eventlog.ErrClosed},
		{"Snapshots", func() error { return snapshots(none) }, eventlog.ErrClosed},
		{"Find", func() error { _, err := projection.Find(ctx, none, "s", "id"); return err }, eventlog.ErrClosed},
		{"VerifySnapshots", func() error { _, err := projection.VerifySnapshots(ctx, none, "s"); return err }, eventlog.ErrClosed},
	} {
		if err := tt.call(); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, ok := projection.State(nil, projection.History()); ok {
		t.Error("nil has a state")
	}
}
