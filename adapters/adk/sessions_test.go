package adk_test

import (
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/sessiontestsuite"

	"github.com/convlog/convlog/adapters/adk"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

func TestSuite(t *testing.T) {
	opts := sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}
	sessiontestsuite.RunServiceTests(t, opts, func(t *testing.T) session.Service {
		log := eventlog.Open(jsonl.New(t.TempDir()))
		t.Cleanup(func() { log.Close() })
		return adk.New(log).Sessions
	})
}
