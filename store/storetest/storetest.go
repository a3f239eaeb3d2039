// Package storetest tests a store against every promise of eventlog.Store and of
// eventlog's optional interfaces. Package eventlog/logtest tests a log over the same
// store. Run both:
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
// Each promise is a subtest, for example TestStore/span/selects. A failing subtest
// prints the promise in one or two sentences. Promises of an optional interface are
// skipped if the store does not implement it.
//
// The environment variable CONVLOG_TEST_LONG=1 selects the long form: random tests and races
// have more rounds, and data is larger. Run it once for a new store. go test -short selects
// the shortest form.
//
// Start with the groups harness, store and span: they need only the methods of
// eventlog.Store. Each group has a file of its own.
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
		{Name: "lease", Cases: leaseCases},
		{Name: "changes", Cases: changeCases},
		{Name: "race", Cases: raceCases},
		{Name: "handles", Cases: handleCases},
		{Name: "listing", Cases: listingCases},
		{Name: "lookup", Cases: lookupCases},
		{Name: "size", Cases: sizeCases},
		{Name: "fragments", Cases: fragmentCases},
		{Name: "blob", Cases: blobCases},
		{Name: "reopen", Cases: reopenCases},
		{Name: "catalog", Cases: catalogCases},
		{Name: "network", Cases: networkCases},
	}
}

// Run tests every promise of a store as a subtest of t. open is called for each
// subtest.
func Run(t *testing.T, open Opener) { suite.RunGroups(t, open, groups(), newEnv) }

// Harness describes one empty store under test. Each promise gets a new one.
type Harness = suite.Harness

// Network is a connection to a server that the promises of group network break.
type Network = suite.Network

// Opener returns the harness of a new, empty store. t ends with the promise's subtest.
type Opener = suite.Opener

type (
	testCase = suite.Case[*env]
	group    = suite.Group[*env]
)

// env is the environment of a promise.
type env struct{ *suite.Env }

func newEnv(e *suite.Env) *env { return &env{e} }
