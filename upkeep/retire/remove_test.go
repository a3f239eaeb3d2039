package retire_test

import (
	"fmt"
	"testing"

	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/retire"
)

// Remove lists the store once, and once more for each session that was used meanwhile.
func TestRemoveListsTheStoreOnce(t *testing.T) {
	store := &suite.CountingStore{Store: jsonl.New(t.TempDir())}
	w := newWorld(t, store)
	const sessions = 20
	for i := range sessions {
		w.say(fmt.Sprintf("s%02d", i), "hello")
	}
	for _, used := range []string{"", "s03"} {
		plan, err := retire.NewPlan(t.Context(), w.log, before)
		if err != nil || len(plan.Sessions) != sessions {
			t.Fatal(len(plan.Sessions), err)
		}
		want := 1
		if used != "" {
			w.say(used, "more")
			want++
		}
		store.Listings = 0
		if err := plan.Remove(t.Context(), w.log); err != nil || store.Listings != want {
			t.Errorf("%q is used meanwhile: %d listings (%v), want %d", used, store.Listings, err, want)
		}
		if got := len(plan.Removed) + len(plan.Kept); got != sessions || len(plan.Kept) != want-1 {
			t.Errorf("%q is used meanwhile: removed %d, kept %v", used, len(plan.Removed), plan.Kept)
		}
		for i := range sessions {
			if name := fmt.Sprintf("s%02d", i); name != used {
				w.say(name, "again")
			}
		}
	}
}
