package postgres_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/convlog/convlog/eventlog/logtest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/storetest"
)

func TestLog(t *testing.T) {
	t.Parallel()
	logtest.Run(t, func(t testing.TB) storetest.Harness {
		h := open(t)
		h.Sample = 8
		return h
	})
}

// manyHistories is the number of random histories of the long form. It is lower than in the
// tests of other stores: each statement is a round trip to a server.
const manyHistories = 25

// TestMain runs more tests in parallel: they mostly wait for the server.
func TestMain(m *testing.M) {
	if os.Getenv("RAPID_CHECKS") == "" {
		_ = flag.Set("rapid.checks", strconv.Itoa(testsize.Fewer(manyHistories)))
	}
	_ = flag.Set("test.parallel", "16")
	flag.Parse()
	os.Exit(m.Run())
}
