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
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

func groups() []group {
	return []group{
		{Name: "harness", Cases: harnessCases},
		{Name: "store", Cases: storeCases},
		{Name: "span", Cases: spanCases},
		{Name: "ability", Cases: abilityCases},
		{Name: "identity", Cases: identityCases},
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
func Run(t *testing.T, open func(t testing.TB) Harness) {
	suite.RunGroups(t, func(t testing.TB) suite.Harness { return suite.Harness(open(t)) }, groups(), newEnv)
}

// Harness describes one empty store under test. Each promise gets a new one.
type Harness struct {
	// Open opens the store's data for reading and writing. The suite calls Open again
	// after Close and expects the same data.
	Open func() (eventlog.Store, error)
	// OneHandle means that the data allows only one open handle at a time.
	OneHandle bool
	// OpenReadOnly opens the same data for reading while no other handle is open, also
	// before the first write. It is nil if the store has no read-only mode.
	OpenReadOnly func() (eventlog.Store, error)
	// Path is the file or folder with the data. The names of other files of the store
	// must be in the same folder and begin with the name of Path. The folder must have
	// no other files. Path is empty if the store has no files.
	Path string
	// Holds returns the place in the data that contains text, or an empty string. It is
	// for stores without files. No handle is open. If Holds is nil, the suite checks
	// erasures through the log only.
	Holds func(text string) (where string)
	// Network breaks the connections of the stores that Open opens. It is nil if the store
	// has no server.
	Network suite.Network
	// OpenBeside opens the data of Open through connections that Network does not break. It
	// is set if Network is.
	OpenBeside func() (eventlog.Store, error)
	// Latency is the time of a round trip to the server of the store. If it is not 0, tests
	// with large numbers use smaller ones in every form, and waits are longer.
	Latency time.Duration
	// Parallel tests the promises in parallel, which saves time if they mostly wait for a
	// distant server.
	Parallel bool
	// Sample n makes the usual form check one promise in n, and the short form one in 4n. It is 0
	// unless another test checks all promises of this store, or of another store that has the
	// same code above it.
	Sample int
	// Damage edits the stored lines of a session, like a failing disk: edit receives the
	// raw lines, including newlines, and returns the lines to store. No handle is open.
	// Damage is nil if a test cannot edit the stored lines.
	Damage func(session string, edit func(lines []string) []string) error
}

type (
	testCase = suite.Case[*env]
	group    = suite.Group[*env]
)

// env is the environment of a promise.
type env struct{ *suite.Env }

func newEnv(e *suite.Env) *env { return &env{e} }
