// Package storetest tests that a store keeps every promise of eventlog.Store,
// and that a log over it keeps those of eventlog.Log.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) storetest.Harness {
//			dir := filepath.Join(t.TempDir(), "store")
//			return storetest.Harness{
//				Open:         func() (eventlog.Store, error) { return jsonl.New(dir), nil },
//				OpenReadOnly: func() (eventlog.Store, error) { return jsonl.New(dir, jsonl.Options{ReadOnly: true}), nil },
//				Path:         dir,
//			}
//		})
//	}
//
// Each promise is a subtest that is named for it and prints its explanation
// when it fails. The promises stand in one file per noun.
package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// Harness is one empty store under test. Each promise gets a fresh one.
type Harness struct {
	// Open opens the store's data for reading and writing. After Close it is
	// called again and must show the same data.
	Open func() (eventlog.Store, error)
	// OpenReadOnly opens the same data for reading, while no other handle is
	// open. It is called also where nothing was written yet.
	OpenReadOnly func() (eventlog.Store, error)
	// Path is the folder or file that holds the data, alone in its parent
	// folder but for files whose names begin with its own; empty if the data is
	// not in files.
	Path string
	// Damage changes what is stored of a session, as a failing disk would: edit
	// gets its raw lines, newlines included, and says what is to stand there. No
	// handle is open. nil if the store's data cannot be changed that way.
	Damage func(session string, edit func(lines []string) []string) error
	// Lacks lists what the store cannot do. The promises that need it are left
	// out; the suite checks that the store does not claim it.
	Lacks []Need
}

// Opener makes an empty store. t lives as long as the promise under test.
type Opener func(t testing.TB) Harness

// Need is something that a promise needs and not every store has.
type Need string

// What a store may lack.
const (
	// Handles: Open may be called while another handle is open.
	Handles Need = "handles"
	// ReadOnly: the data can be opened for reading only.
	ReadOnly Need = "read-only"
	// The optional abilities of the same names in eventlog.
	Blobs     Need = "blobs"
	Locker    Need = "locker"
	Rewriter  Need = "rewriter"
	Remover   Need = "remover"
	Versioner Need = "versioner"
	Syncer    Need = "syncer"
	Sweeper   Need = "sweeper"
	Salvager  Need = "salvager"
	Replacer  Need = "replacer"
	// Damage: Harness.Damage is set.
	Damage Need = "damage"
)

// testCase is one promise.
type testCase struct {
	name        string
	explanation string
	needs       []Need
	run         func(t *env)
}

// group is the promises about one noun.
type group struct {
	name  string
	cases []testCase
}

func groups() []group {
	return []group{
		{"harness", harnessCases},
		{"store", storeCases},
		{"span", spanCases},
		{"ability", abilityCases},
		{"append", appendCases},
		{"batch", batchCases},
		{"expect", expectCases},
		{"retry", retryCases},
		{"race", raceCases},
		{"cancel", cancelCases},
		{"handles", handleCases},
		{"read", readCases},
		{"listing", listingCases},
		{"json", jsonCases},
		{"call", callCases},
		{"tree", treeCases},
		{"model", modelCases},
		{"hook", hookCases},
		{"watch", watchCases},
		{"hostile", hostileCases},
		{"size", sizeCases},
		{"fragments", fragmentCases},
		{"blob", blobCases},
		{"redact", redactCases},
		{"remove", removeCases},
		{"search", searchCases},
		{"garbage", garbageCases},
		{"adopt", adoptCases},
		{"damage", damageCases},
		{"repair", repairCases},
		{"reopen", reopenCases},
		{"close", closeCases},
	}
}

// Run tests every promise as a subtest of t.
func Run(t *testing.T, open Opener) {
	lacks := open(t).Lacks
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				if c.possible(lacks) {
					t.Run(c.name, func(t *testing.T) { c.check(t, open, longest) })
				}
			}
		})
	}
}

func (c *testCase) possible(lacks []Need) bool {
	return !slices.ContainsFunc(c.needs, func(n Need) bool { return slices.Contains(lacks, n) })
}

// longest is when a promise counts as broken because nothing happens.
const longest = 3 * time.Minute

// check tests one promise on a fresh store, within limit.
func (c *testCase) check(t testing.TB, open Opener, limit time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	e := &env{TB: t, ctx: ctx, harness: open(t), opener: open, limit: limit}
	defer func() {
		e.close()
		if t.Failed() {
			t.Logf("the promise: %s", c.explanation)
		}
	}()
	c.run(e)
}
