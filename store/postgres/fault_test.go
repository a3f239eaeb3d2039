package postgres_test

import (
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/store/storetest"
)

// openLog opens a log, which is closed at the end of the test.
func openLog(t testing.TB, dsn string, opts ...postgres.Options) *eventlog.Log {
	t.Helper()
	store, err := postgres.New(dsn, opts...)
	if err != nil {
		t.Fatal(err)
	}
	log := eventlog.Open(store)
	t.Cleanup(func() { log.Close() })
	return log
}

// A server 10 ms away, or 2 ms in the smaller forms, keeps every promise. The network to it can be
// broken.
func TestDistant(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		direct := pgtest.DSN(t)
		proxy, dsn := pgtest.Proxied(t, direct)
		delay := testsize.Pick[time.Duration](1, 1, 5) * time.Millisecond
		proxy.Delay(delay)
		h := harness(dsn)
		h.Network, h.OpenBeside = proxy, func() (eventlog.Store, error) { return postgres.New(direct) }
		h.Latency = 2 * delay
		h.Sample = 16
		return h
	})
}
