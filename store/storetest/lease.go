package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var leaseCases = []testCase{
	{
		Name:        "excludes",
		Explanation: "Leaser: a lease has one holder. It is free again after its release.",
		Needs:       []suite.Need{suite.Leaser},
		Run: func(t *env) {
			s := t.Store()
			testLease(t, s, s)
		},
	},
	{
		Name:        "excludes other handles",
		Explanation: "Leaser: a lease also excludes the holders of other handles.",
		Needs:       []suite.Need{suite.Leaser, suite.Handles},
		Run:         func(t *env) { testLease(t, t.Store(), t.Open()) },
	},
	{
		Name:        "one of many takers",
		Explanation: "Leaser: of several that take a lease at the same time, through several handles, one gets it. The others get ErrLeased at once.",
		Needs:       []suite.Need{suite.Leaser, suite.Handles},
		Run:         testLeaseRace,
	},
	{
		Name:        "names",
		Explanation: "Leaser: a name is any text of 1 to 512 bytes. Other names are an error.",
		Needs:       []suite.Need{suite.Leaser},
		Run:         testLeaseNames,
	},
	{
		Name:        "many",
		Explanation: "Leaser: a handle can hold 10,000 leases.",
		Needs:       []suite.Need{suite.Leaser, suite.Handles},
		Run:         testManyLeases,
	},
	{
		Name:        "ends with the handle",
		Explanation: "Leaser: closing a handle ends its leases, closes their Lost channels, and ends no lease of another handle.",
		Needs:       []suite.Need{suite.Leaser, suite.Handles},
		Run:         testLeaseEndsWithHandle,
	},
	{
		Name:        "ended context",
		Explanation: "Leaser: with an ended context both methods return its error, and take no lease.",
		Needs:       []suite.Need{suite.Leaser},
		Run: func(t *env) {
			l := suite.Ability[eventlog.Leaser](t, t.Store())
			_, err := l.Lease(t.EndedContext(), "a")
			t.WantErr(context.Canceled, err)
			_, err = l.Leased(t.EndedContext(), "a")
			t.WantErr(context.Canceled, err)
			t.wantLeased(l, "a", false)
		},
	},
	{
		Name:        "leaves no trace",
		Explanation: "Leaser: leases are no sessions, no leftovers and no damage.",
		Needs:       []suite.Need{suite.Leaser},
		Run:         testLeaseLeavesNoTrace,
	},
	{
		Name:        "read-only",
		Explanation: "Leaser: a read-only store gives no lease. It reports that a lease is free, and creates nothing.",
		Needs:       []suite.Need{suite.Leaser, suite.ReadOnly},
		Run:         testLeaseReadOnly,
	},
}

// take takes a lease.
func (t *env) take(l eventlog.Leaser, name string) eventlog.Lease {
	t.Helper()
	lease, err := l.Lease(t.Ctx, name)
	t.Must(err)
	return lease
}

// wantTaken checks that a lease cannot be taken.
func (t *env) wantTaken(l eventlog.Leaser, name string) {
	t.Helper()
	_, err := l.Lease(t.Ctx, name)
	t.WantErr(eventlog.ErrLeased, err)
}

func (t *env) wantLeased(l eventlog.Leaser, name string, want bool) {
	t.Helper()
	got, err := l.Leased(t.Ctx, name)
	t.Must(err)
	t.WantEqual(fmt.Sprintf("%.20q is leased", name), want, got)
}

// wantLost checks whether the lease has ended.
func (t *env) wantLost(l eventlog.Lease, want bool) {
	t.Helper()
	got := false
	select {
	case <-l.Lost():
		got = true
	default:
	}
	t.WantEqual("the lease has ended", want, got)
}

func testLease(t *env, one, two eventlog.Store) {
	a, b := suite.Ability[eventlog.Leaser](t, one), suite.Ability[eventlog.Leaser](t, two)
	t.wantLeased(a, "x", false)
	first, other := t.take(a, "x"), t.take(b, "y")
	for _, l := range []eventlog.Leaser{a, b} {
		t.wantTaken(l, "x")
		t.wantTaken(l, "y")
		t.wantLeased(l, "x", true)
		t.wantLeased(l, "y", true)
		t.wantLeased(l, "z", false)
	}
	t.wantLost(first, false)
	t.Must(first.Release())
	t.wantLost(first, true)
	t.wantLeased(a, "x", false)
	t.wantLeased(b, "x", false)
	second := t.take(b, "x")
	t.Must(first.Release()) // releases nothing
	t.wantTaken(a, "x")
	t.wantLost(second, false)
	t.Must(errors.Join(second.Release(), other.Release()))
	t.Must(t.take(a, "x").Release())
}

func testLeaseRace(t *env) {
	leasers := []eventlog.Leaser{suite.Ability[eventlog.Leaser](t, t.Store()), suite.Ability[eventlog.Leaser](t, t.Open())}
	var holders, taken atomic.Int32
	errs := suite.Concurrently(8, func(i int) error {
		for range t.Volume(200) {
			lease, err := leasers[i%2].Lease(t.Ctx, "x")
			if errors.Is(err, eventlog.ErrLeased) {
				continue
			}
			if err != nil {
				return err
			}
			if n := holders.Add(1); n != 1 {
				t.Errorf("%d hold the lease", n)
			}
			taken.Add(1)
			if held, err := leasers[1-i%2].Leased(t.Ctx, "x"); err != nil || !held {
				t.Errorf("the lease is held: got %v, %v", held, err)
			}
			holders.Add(-1)
			if err := lease.Release(); err != nil {
				return err
			}
		}
		return nil
	})
	t.Must(errors.Join(errs...))
	if taken.Load() == 0 {
		t.Errorf("nobody got the lease")
	}
}

func testLeaseNames(t *env) {
	l := suite.Ability[eventlog.Leaser](t, t.Store())
	names := []string{"a", "A", "a ", "../a", "a/b", "\x00", "\xff", "é", strings.Repeat("n", 512), strings.Repeat("n", 511)}
	for _, name := range names {
		t.take(l, name)
	}
	for _, name := range names {
		t.wantTaken(l, name)
	}
	for _, name := range []string{"", strings.Repeat("n", 513)} {
		if _, err := l.Lease(t.Ctx, name); err == nil || errors.Is(err, eventlog.ErrLeased) {
			t.Errorf("a name of %d bytes: got error %v", len(name), err)
		}
		if _, err := l.Leased(t.Ctx, name); err == nil {
			t.Errorf("a name of %d bytes was looked up", len(name))
		}
	}
	t.WantNoOtherFiles()
}

func testManyLeases(t *env) {
	count := t.Volume(10_000)
	a, b := suite.Ability[eventlog.Leaser](t, t.Store()), suite.Ability[eventlog.Leaser](t, t.Open())
	var leases []eventlog.Lease
	for n := range count {
		leases = append(leases, t.take(a, fmt.Sprint(n)))
	}
	for n := 0; n < count; n += 97 {
		t.wantTaken(b, fmt.Sprint(n))
	}
	for n := 0; n < count; n += 2 {
		t.Must(leases[n].Release())
	}
	for n := range 100 {
		t.wantLeased(b, fmt.Sprint(n), n%2 == 1)
	}
}

func testLeaseEndsWithHandle(t *env) {
	s := t.Open()
	a, b := suite.Ability[eventlog.Leaser](t, s), suite.Ability[eventlog.Leaser](t, t.Store())
	lease, other := t.take(a, "x"), t.take(b, "y")
	t.Must(s.Close())
	t.wantLost(lease, true)
	t.Must(lease.Release())
	_, err := a.Lease(t.Ctx, "z")
	t.WantErr(eventlog.ErrClosed, err)
	_, err = a.Leased(t.Ctx, "z")
	t.WantErr(eventlog.ErrClosed, err)
	t.wantLost(other, false)
	t.take(b, "x")
	t.wantTaken(b, "y")
	t.Close()
	t.WantNoOpenFiles()
}

func testLeaseLeavesNoTrace(t *env) {
	s := t.Store()
	t.take(suite.Ability[eventlog.Leaser](t, s), "x")
	infos, err := suite.Collect(s.Sessions(t.Ctx))
	t.Must(err)
	t.WantEqual("number of sessions", 0, len(infos))
	if sweeper, ok := eventlog.As[eventlog.Sweeper](s); ok {
		leftovers, err := suite.Collect(sweeper.Sweep(t.Ctx, true))
		t.Must(err)
		t.WantEqual("number of leftovers", 0, len(leftovers))
	}
	if checker, ok := eventlog.As[eventlog.Checker](s); ok {
		defects, err := suite.Defects(checker.Check(t.Ctx))
		t.Must(err)
		t.WantEqual("number of defects", 0, len(defects))
	}
	t.wantTaken(suite.Ability[eventlog.Leaser](t, s), "x")
}

func testLeaseReadOnly(t *env) {
	t.Fill(t.Main(), "a", 1)
	t.Close()
	before := t.Files()
	l := suite.Ability[eventlog.Leaser](t, t.ReadOnly().Store())
	_, err := l.Lease(t.Ctx, "x")
	t.WantErr(eventlog.ErrReadOnly, err)
	t.wantLeased(l, "x", false)
	t.Close()
	t.WantEqual("files", before, t.Files())
}
