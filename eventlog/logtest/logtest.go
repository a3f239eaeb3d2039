// Package logtest tests that a log over a store keeps every promise of eventlog.Log,
// and of the packages that search and maintain a log.
//
//	func TestLog(t *testing.T) { logtest.Run(t, open) } // open as for storetest.Run
//
// Each promise is a subtest with the promise's name. It prints its explanation if it
// fails. There is a file for each group.
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
		{Name: "watch", Cases: watchCases},
		{Name: "hostile", Cases: hostileCases},
		{Name: "redact", Cases: redactCases},
		{Name: "remove", Cases: removeCases},
		{Name: "search", Cases: searchCases},
		{Name: "garbage", Cases: garbageCases},
		{Name: "adopt", Cases: adoptCases},
		{Name: "damage", Cases: damageCases},
		{Name: "repair", Cases: repairCases},
		{Name: "close", Cases: closeCases},
	}
}

// Run tests every promise as a subtest of t.
func Run(t *testing.T, open storetest.Opener) { suite.RunGroups(t, open, groups(), newEnv) }

type (
	testCase = suite.Case[*env]
	group    = suite.Group[*env]
)

// env is what a promise is tested with.
type env struct{ *suite.Env }

func newEnv(e *suite.Env) *env { return &env{e} }
