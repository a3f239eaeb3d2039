package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/store/postgres"
)

// endless are options with which no lease ends by the clock during a test.
var endless = postgres.Options{LeaseTime: time.Hour}

func leaserOf(t testing.TB, dsn string, o postgres.Options) eventlog.Leaser {
	t.Helper()
	return openLog(t, dsn, o).Store().(eventlog.Leaser)
}

// take takes lease "x", also after the server was away.
func take(ctx context.Context, l eventlog.Leaser) (lease eventlog.Lease, err error) {
	for {
		if lease, err = l.Lease(ctx, "x"); !errors.Is(err, eventlog.ErrUnavailable) {
			return lease, err
		}
	}
}

// terminate ends the connections that hold an advisory lock of the owner of a lease.
const terminate = `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN %s.leases ON owner = classid::bigint << 32 | objid::bigint
	WHERE locktype = 'advisory' AND objsubid = 1`

// A lease ends long before its row when the connection of its holder ends: for the holder
// first, and then for others. The holder gets no lease that another one has, and takes a
// free one again.
func TestHolderLosesItsConnection(t *testing.T) {
	t.Parallel()
	proxied := func(t *testing.T) (first, second string, end func() error) {
		second = pgtest.DSN(t)
		proxy, first := pgtest.Proxied(t, second)
		return first, second, func() error { proxy.Cut(); return nil }
	}
	terminated := func(t *testing.T) (first, second string, end func() error) {
		dsn := pgtest.DSN(t)
		return dsn, dsn, func() error { sql(t, dsn, terminate); return nil }
	}
	restarted := func(t *testing.T) (first, second string, end func() error) {
		server := pgtest.Start(t)
		return server.DSN(), server.DSN(), func() error { return errors.Join(server.Kill(), server.Run()) }
	}
	promoted := func(t *testing.T) (first, second string, end func() error) {
		primary, standby, dsn := startPair(t)
		return dsn, dsn, func() error { return errors.Join(primary.Kill(), standby.Promote()) }
	}
	for name, start := range map[string]func(*testing.T) (string, string, func() error){
		"cut": proxied, "terminated": terminated, "restarted": restarted, "promoted": promoted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two, end := start(t)
			first, second := leaserOf(t, one, endless), leaserOf(t, two, endless)
			lease, err := first.Lease(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := second.Lease(t.Context(), "x"); !errors.Is(err, eventlog.ErrLeased) {
				t.Errorf("a held lease: got error %v, want ErrLeased", err)
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			<-lease.Lost()
			other, err := take(t.Context(), second)
			for errors.Is(err, eventlog.ErrLeased) { // the server has not noticed yet
				other, err = take(t.Context(), second)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := take(t.Context(), first); !errors.Is(err, eventlog.ErrLeased) {
				t.Errorf("the first holder: got error %v, want ErrLeased", err)
			}
			if err := errors.Join(lease.Release(), other.Release()); err != nil {
				t.Error(err)
			}
			if _, err := take(t.Context(), first); err != nil {
				t.Errorf("a free lease: %v", err)
			}
		})
	}
}

// A holder whose connection broke takes its own lease again, and another one does not get
// it any more.
func TestHolderTakesItsLeaseAgain(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	first, second := leaserOf(t, dsn, endless), leaserOf(t, dsn, endless)
	lease, err := first.Lease(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		sql(t, dsn, terminate)
		<-lease.Lost()
		if lease, err = take(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if held, err := second.Leased(t.Context(), "x"); err != nil || !held {
			t.Errorf("leased is %v, %v", held, err)
		}
	}
}

// A holder that is parted from the server loses its lease. While the server does not know,
// the lease ends by the clock.
func TestPartedHolder(t *testing.T) {
	t.Parallel()
	direct := pgtest.DSN(t)
	proxy, dsn := pgtest.Proxied(t, direct)
	first, second := leaserOf(t, dsn, postgres.Options{LeaseTime: 2 * time.Second}), leaserOf(t, direct, endless)
	lease, err := first.Lease(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	proxy.Stall(true)
	defer proxy.Stall(false)
	<-lease.Lost()
	for {
		_, err := second.Lease(t.Context(), "x")
		if err == nil {
			break
		}
		if !errors.Is(err, eventlog.ErrLeased) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// The locks of a primary are not on its standby. A store that reads the standby finds a
// lease by its row.
func TestLeaseOnAStandby(t *testing.T) {
	t.Parallel()
	_, standby, dsn := startPair(t)
	if _, err := leaserOf(t, with(t, dsn, "synchronous_commit", "remote_apply"), endless).Lease(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	for n := int64(0); n == 0; {
		var err error
		if n, err = pgtest.Number(standby.DSN(), `SELECT count(*) FROM convlog.leases`); err != nil {
			t.Fatal(err)
		}
	}
	reader := leaserOf(t, standby.DSN(), postgres.Options{ReadOnly: true})
	if held, err := reader.Leased(t.Context(), "x"); err != nil || !held {
		t.Errorf("leased is %v, %v", held, err)
	}
}

// Roles without rights on other roles see whose connection has ended.
func TestLeasesOfRoles(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	if err := add(t, dsn); err != nil {
		t.Fatal(err)
	}
	_, schema, _ := pgtest.Split(dsn)
	var leasers []eventlog.Leaser
	for _, role := range []string{"one_", "two_"} {
		sql(t, dsn, `CREATE ROLE `+role+`%s LOGIN; GRANT USAGE ON SCHEMA %s TO `+role+`%s;
			GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO `+role+`%s; GRANT USAGE ON ALL SEQUENCES IN SCHEMA %s TO `+role+`%s`)
		t.Cleanup(func() { sql(t, dsn, `DROP OWNED BY `+role+`%s; DROP ROLE `+role+`%s`) })
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.User(role + schema)
		leasers = append(leasers, leaserOf(t, u.String(), endless))
	}
	lease, err := leasers[0].Lease(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if held, err := leasers[1].Leased(t.Context(), "x"); err != nil || !held {
		t.Errorf("leased is %v, %v", held, err)
	}
	sql(t, dsn, terminate)
	<-lease.Lost()
	if _, err := leasers[1].Lease(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}
