package erase_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
)

// RemoveEach removes forks and then their parent, and ends with the first session that it
// may not remove. It lists the store once, and never if the store finds the forks.
func TestRemoveEach(t *testing.T) {
	testRemoveEach(t, jsonl.New(t.TempDir()), 1)
	testRemoveEach(t, memory.New(), 0)
}

func testRemoveEach(t *testing.T, under eventlog.Store, listings int) {
	t.Helper()
	store := &suite.CountingStore{Store: under}
	log := eventlog.Open(store)
	defer func() { _ = log.Close() }()
	for i := range 12 {
		if _, err := log.Append(t.Context(), fmt.Sprintf("s%02d", i), eventlog.New(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	for parent, child := range map[string]string{"s00": "fork", "s11": "stays"} {
		if _, err := fork.At(t.Context(), log, parent, fork.Head(), fork.Options{ID: child}); err != nil {
			t.Fatal(err)
		}
	}
	var removed []string
	done := func(session string) error {
		removed = append(removed, session)
		return nil
	}
	store.Listings = 0
	err := erase.RemoveEach(t.Context(), log, []string{"fork", "s00", "s01", "s11", "s02"}, done)
	if want := []string{"fork", "s00", "s01"}; !errors.Is(err, eventlog.ErrInUse) || !slices.Equal(removed, want) {
		t.Errorf("removed %q, %v; want %q and ErrInUse", removed, err, want)
	}
	if store.Listings != listings {
		t.Errorf("%d listings of the store, want %d", store.Listings, listings)
	}
	if _, err := log.Head(t.Context(), "s02"); err != nil {
		t.Errorf("s02, after the session that stays: %v", err)
	}
}
