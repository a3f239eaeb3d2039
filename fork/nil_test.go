package fork_test

import (
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

// A nil log is an error, never a panic.
func TestNilLog(t *testing.T) {
	ctx := t.Context()
	var none *eventlog.Log
	for name, call := range map[string]func() error{
		"At":       func() error { _, err := fork.At(ctx, none, "s", fork.Head()); return err },
		"Branches": func() error { _, err := fork.Branches(ctx, none, "s", false); return err },
		"Copy":     func() error { _, err := fork.Copy(ctx, none, "s"); return err },
		"Diff": func() error {
			_, err := fork.Diff(ctx, none, fork.Tip{Session: "s"}, fork.Tip{Session: "s"})
			return err
		},
		"Merge":        func() error { _, err := fork.Merge(ctx, none, "s", "c", event.Child{}); return err },
		"own branches": func() error { _, err := fork.Branches(ctx, none, "s", true); return err },
		"Recover":      func() error { _, err := fork.Recover(ctx, none, "s"); return err },
		"Resolve":      func() error { _, err := fork.Resolve(ctx, none, "s", fork.AtTurn(1)); return err },
		"Rewind":       func() error { _, err := fork.Rewind(ctx, none, "s", fork.Head()); return err },
		"Tree":         func() error { _, err := fork.Tree(ctx, none); return err },
	} {
		if err := call(); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
