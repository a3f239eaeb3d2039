// Package logtest tests a log over a store against every promise of eventlog.Log and
// of the packages that search and maintain a log.
//
//	func TestLog(t *testing.T) { logtest.Run(t, open) } // open as for storetest.Run
//
// Each promise is a subtest, for example TestLog/append/read_back. A failing subtest
// prints the promise in one or two sentences. Promises of an optional interface are
// skipped if the store does not implement it. Each group has a file of its own.
//
// The environment variable CONVLOG_TEST_LONG=1 selects the long form: random tests and races
// have more rounds, and data is larger. Run it once for a new store. go test -short selects
// the shortest form.
package logtest

import (
	"testing"

	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/storetest"
)

func groups() []group {
	return []group{
		{Name: "append", Cases: appendCases},
		{Name: "batch", Cases: batchCases},
		{Name: "expect", Cases: expectCases},
		{Name: "retry", Cases: retryCases},
		{Name: "cancel", Cases: cancelCases},
		{Name: "read", Cases: readCases},
		{Name: "json", Cases: jsonCases},
		{Name: "call", Cases: callCases},
		{Name: "tree", Cases: treeCases},
		{Name: "model", Cases: modelCases},
		{Name: "hook", Cases: hookCases},
		{Name: "changed", Cases: changedCases},
		{Name: "watch", Cases: watchCases},
		{Name: "hostile", Cases: hostileCases},
		{Name: "redact", Cases: redactCases},
		{Name: "travel", Cases: travelCases},
		{Name: "remove", Cases: removeCases},
		{Name: "hold", Cases: holdCases},
		{Name: "search", Cases: searchCases},
		{Name: "garbage", Cases: garbageCases},
		{Name: "adopt", Cases: adoptCases},
		{Name: "damage", Cases: damageCases},
		{Name: "repair", Cases: repairCases},
		{Name: "close", Cases: closeCases},
	}
}

// Run tests every promise of a log as a subtest of t. open is called for each subtest.
func Run(t *testing.T, open func(t testing.TB) storetest.Harness) { runGroups(t, open, groups()) }

func runGroups(t *testing.T, open func(t testing.TB) storetest.Harness, of []group) {
	suite.RunGroups(t, func(t testing.TB) suite.Harness { return suite.Harness(open(t)) }, of, newEnv)
}

type (
	testCase = suite.Case[*env]
	group    = suite.Group[*env]
)

// env is the environment of a promise.
type env struct{ *suite.Env }

func newEnv(e *suite.Env) *env { return &env{e} }
