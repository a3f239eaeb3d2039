package postgres_test

import (
	"flag"
	"os"
	"testing"

	"github.com/convlog/convlog/eventlog/logtest"
)

func TestLog(t *testing.T) { logtest.Run(t, open) }

// TestMain makes fewer random histories than the tests of other stores: each statement is
// a round trip to a server. Tests in parallel mostly wait for the server.
func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("8")
	}
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() == checks.DefValue && os.Getenv("RAPID_CHECKS") == "" {
		_ = checks.Value.Set("25")
	}
	os.Exit(m.Run())
}
