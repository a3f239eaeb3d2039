package transcript

import (
	"testing"

	"pgregory.net/rapid"

	_ "github.com/convlog/convlog/internal/testsize"
)

// Law: the state at a seq is the state of the newest change up to it.
func TestChanges(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var log changes
		var all []change
		seq := int64(0)
		for range rapid.IntRange(0, 3*markEvery).Draw(r, "changes") {
			seq += rapid.Int64Range(1, 300).Draw(r, "gap")
			c := change{seq: seq}
			c.setFlags(byte(rapid.IntRange(0, 15).Draw(r, "flags")))
			c.count, c.index = rapid.Int().Draw(r, "count"), rapid.Int().Draw(r, "index")
			log.add(c)
			all = append(all, c)
		}
		for range 50 {
			at := rapid.Int64Range(0, seq+1).Draw(r, "seq")
			var want turnState
			for _, c := range all {
				if c.seq <= at {
					want = c.turnState
				}
			}
			if got := log.at(at); got != want {
				r.Fatalf("at %d: %+v, want %+v", at, got, want)
			}
		}
	})
}
