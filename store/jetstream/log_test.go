package jetstream_test

import (
	"flag"
	"os"
	"testing"

	"github.com/convlog/convlog/eventlog/logtest"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/store/storetest"
)

func TestLog(t *testing.T) {
	servers := natstest.Start(t, natstest.Options{Payload: 8 << 20}) // some laws append more than 1 MiB
	logtest.Run(t, func(testing.TB) storetest.Harness { return harness(servers) })
}

// TestMain makes fewer random histories than the tests of other stores: each append is a
// round trip to a server.
func TestMain(m *testing.M) {
	natstest.RunNode()
	flag.Parse()
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() == checks.DefValue && os.Getenv("RAPID_CHECKS") == "" {
		_ = checks.Value.Set("25")
	}
	os.Exit(m.Run())
}
