package jetstream_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/convlog/convlog/eventlog/logtest"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/storetest"
)

func TestLog(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	logtest.Run(t, func(testing.TB) storetest.Harness {
		h := harness(servers)
		h.Parallel = true // they mostly wait for the server
		h.Sample = 8
		return h
	})
}

// manyHistories is the number of random histories of the long form. It is lower than in the
// tests of other stores: each append is a round trip to a server.
const manyHistories = 25

// TestMain runs more tests in parallel: they mostly wait for servers.
func TestMain(m *testing.M) {
	if os.Getenv("RAPID_CHECKS") == "" {
		_ = flag.Set("rapid.checks", strconv.Itoa(testsize.Fewer(manyHistories)))
	}
	_ = flag.Set("test.parallel", "16")
	flag.Parse()
	code := m.Run()
	if err := natstest.CloseShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
