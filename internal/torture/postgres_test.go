//go:build unix

package torture

import (
	"slices"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/store/postgres"
)

// postgresBackend is a store on a server.
var postgresBackend = serverBackend("postgres",
	func(url string) (eventlog.Store, error) { return postgres.New(url) },
	func(url string) (eventlog.Store, error) { return postgres.New(url, postgres.Options{ReadOnly: true}) })

// Processes that write to one store on a server are killed at any moment.
func TestKillPostgres(t *testing.T) {
	t.Parallel()
	c := newServerFixture(t, postgresBackend, pgtest.DSN(t)).startGroup(groupSize, job{})
	c.killMany(min(killsPerStore, *killsFlag))
	t.Logf("%d kills, %d of them within a step; %d events acknowledged, none lost", c.killed, c.inStep, c.ledger.events())
}

// Several processes append to one shared session of a server, and to others.
func TestProcessesPostgres(t *testing.T) {
	t.Parallel()
	s := newServerFixture(t, postgresBackend, pgtest.DSN(t))
	c := s.startGroup(groupSize, job{To: *stepsFlag})
	errs := s.work(c.ledger, groupSize, groupSize+1)
	for _, m := range c.members {
		s.must(m.finish())
	}
	s.must(errs())
	c.check(true)
	t.Logf("%d processes, %d events acknowledged, none lost", groupSize+1, c.ledger.events())
}

// The server is killed at any moment while processes write, and starts again. Every
// acknowledged step is stored once; a retry stores the others once.
func TestKillServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := newServerFixture(t, postgresBackend, server.DSN())
	restart := func(*group) {
		s.must(server.Kill())
		s.must(server.Run())
	}
	endure(t, s, slices.Repeat([]func(*group){restart}, max(*killsFlag/8, 1))...)
}

// The primary is killed while processes write, and its synchronous standby is promoted.
func TestPromoteStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	standby := pgtest.StartStandby(t, primary)
	s := newServerFixture(t, postgresBackend, pgtest.Hosts(primary, standby))
	s.must(primary.Synchronous())
	endure(t, s, func(c *group) {
		s.must(primary.Kill())
		s.must(standby.Promote())
		promoted := time.Now()
		c.waitAcknowledged(1)
		t.Logf("the first step was acknowledged %v after the promotion", time.Since(promoted).Round(time.Millisecond))
	})
}

// The network between the processes and the server breaks in several ways.
func TestBrokenNetwork(t *testing.T) {
	t.Parallel()
	proxy, dsn := pgtest.Proxied(t, pgtest.DSN(t))
	s := newServerFixture(t, postgresBackend, dsn)
	wait := func() { time.Sleep(time.Duration(s.random.IntN(50)) * time.Millisecond) }
	cut := func(*group) { proxy.Cut() }
	swallow := func(*group) { // answers are lost after the commit
		proxy.Swallow(true)
		wait()
		proxy.Cut()
		proxy.Swallow(false)
	}
	part := func(*group) {
		proxy.Stall(true)
		wait()
		if s.random.IntN(2) == 0 {
			proxy.Cut()
		}
		proxy.Stall(false)
	}
	endure(t, s, slices.Repeat([]func(*group){cut, swallow, part}, max(*killsFlag/16, 1))...)
}
