// Package storetest tests that a store keeps every promise of eventlog.Store and of
// the abilities it has. Package eventlog/logtest tests a log over the same store.
//
//	func TestStore(t *testing.T) { storetest.Run(t, open) }
//	func TestLog(t *testing.T)   { logtest.Run(t, open) }
//
//	func open(t testing.TB) storetest.Harness {
//		dir := filepath.Join(t.TempDir(), "store")
//		return storetest.Harness{
//			Open:         func() (eventlog.Store, error) { return jsonl.New(dir), nil },
//			OpenReadOnly: func() (eventlog.Store, error) { return jsonl.New(dir, jsonl.Options{ReadOnly: true}), nil },
//			Path:         dir,
//		}
//	}
//
// Each promise is a subtest with the promise's name. It prints its explanation if it
// fails. There is a file for each group.
package storetest

import (
	"testing"

	"github.com/convlog/convlog/internal/suite"
)

func groups() []group {
	return []group{
		{Name: "harness", Cases: harnessCases},
		{Name: "store", Cases: storeCases},
		{Name: "span", Cases: spanCases},
		{Name: "ability", Cases: abilityCases},
		{Name: "race", Cases: raceCases},
		{Name: "handles", Cases: handleCases},
		{Name: "listing", Cases: listingCases},
		{Name: "size", Cases: sizeCases},
		{Name: "fragments", Cases: fragmentCases},
		{Name: "blob", Cases: blobCases},
		{Name: "reopen", Cases: reopenCases},
	}
}

// Run tests every promise as a subtest of t.
func Run(t *testing.T, open Opener) { suite.RunGroups(t, open, groups(), in) }

// Harness is one empty store under test. Each promise gets a fresh one.
type Harness = suite.Harness

// Opener makes an empty store. t lives as long as the promise under test.
type Opener = suite.Opener

type (
	testCase = suite.Case[*env]
	group    = suite.Group[*env]
)

// env is what a promise is tested with.
type env struct{ *suite.Env }

func in(e *suite.Env) *env { return &env{e} }
