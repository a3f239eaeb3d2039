package jetstream_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jetstream"
)

func take(t testing.TB, log *eventlog.Log, name string) eventlog.Lease {
	t.Helper()
	lease, err := log.Store().(*jetstream.Store).Lease(t.Context(), name)
	if err != nil {
		t.Fatalf("lease %q: %v", name, err)
	}
	return lease
}

func wantLeased(t testing.TB, log *eventlog.Log, name string, want bool) {
	t.Helper()
	held, err := log.Store().(*jetstream.Store).Leased(t.Context(), name)
	if err != nil || held != want {
		t.Errorf("lease %q is held: got %v, %v, want %v", name, held, err, want)
	}
}

func wantLeftovers(t testing.TB, log *eventlog.Log, remove bool, want int) {
	t.Helper()
	leftovers, err := suite.Collect(log.Store().(*jetstream.Store).Sweep(t.Context(), remove))
	if err != nil || len(leftovers) != want {
		t.Errorf("sweep: got %v, %v, want %d leftovers", leftovers, err, want)
	}
}

// A store renews one message, however many leases it has.
func TestLeasesRenewOneMessage(t *testing.T) {
	servers := natstest.Start(t, natstest.Options{})
	options := jetstream.Options{Connect: servers.Connect, LeaseTime: time.Second}
	log := openLog(t, options)
	var leases []eventlog.Lease
	for n := range 1000 {
		leases = append(leases, take(t, log, fmt.Sprint(n)))
	}
	before := controlMessages(t, servers)
	time.Sleep(options.LeaseTime)
	if stored := controlMessages(t, servers) - before; stored == 0 || stored >= 20 {
		t.Errorf("1,000 leases stored %d messages in a lease time, want 1 to 19", stored)
	}
	for n, lease := range leases {
		select {
		case <-lease.Lost():
			t.Fatalf("lease %d is lost", n)
		default:
		}
	}
}

// controlMessages is the number of messages that the control stream has ever stored.
func controlMessages(t testing.TB, servers *natstest.Cluster) uint64 {
	t.Helper()
	nc, err := servers.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	info, err := js.StreamInfo("convlog_control")
	if err != nil {
		t.Fatal(err)
	}
	return info.State.LastSeq
}

// The leases of a store that died are free after its lease time. Until a sweep, or the next
// holder, their messages are leftovers.
func TestLeasesOfADeadStore(t *testing.T) {
	servers, through, direct := proxied(t)
	through.LeaseTime = time.Second
	dying, other := openLog(t, through), openLog(t, direct)
	for _, name := range []string{"a", "b", "c"} {
		take(t, dying, name)
	}
	wantLeftovers(t, other, true, 0)
	servers.Nodes[0].Clients().Refuse(true)
	servers.Nodes[0].Clients().Cut()
	for held := true; held; {
		var err error
		if held, err = other.Store().(*jetstream.Store).Leased(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	wantLeftovers(t, other, false, 3)
	lease := take(t, other, "b")
	wantLeftovers(t, other, true, 2)
	wantLeftovers(t, other, false, 0)
	wantLeased(t, other, "b", true)
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
	servers.Nodes[0].Clients().Refuse(false)
	for n := 0; ; n++ { // a store that was cut off gets leases again
		if lease, err := dying.Store().(*jetstream.Store).Lease(t.Context(), fmt.Sprint(n)); err == nil {
			wantLeased(t, other, fmt.Sprint(n), true)
			if err := lease.Release(); err != nil {
				t.Error(err)
			}
			break
		} else if !errors.Is(err, eventlog.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

// A lease whose storing was not answered before the caller's context ended is free again
// when the server answers. A release without an answer is completed too.
func TestLeaseWithoutAnswer(t *testing.T) {
	servers, through, direct := proxied(t)
	proxy := servers.Nodes[0].Clients()
	through.LeaseTime = time.Minute
	log, other := openLog(t, through), openLog(t, direct)
	held := take(t, log, "held")
	proxy.Swallow(true)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for {
			if held, err := other.Store().(*jetstream.Store).Leased(ctx, "lost"); held || err != nil {
				return
			}
		}
	}()
	_, err := log.Store().(*jetstream.Store).Lease(ctx, "lost")
	wantError(t, "a lease without an answer", context.Canceled, err)
	released := make(chan error)
	go func() { released <- held.Release() }()
	<-held.Lost()
	wantError(t, "a release without an answer", eventlog.ErrUnavailable, <-released)
	proxy.Swallow(false)
	proxy.Cut()
	for _, name := range []string{"lost", "held"} {
		for lease := eventlog.Lease(nil); lease == nil; {
			if lease, err = log.Store().(*jetstream.Store).Lease(t.Context(), name); err != nil && !errors.Is(err, eventlog.ErrLeased) && !errors.Is(err, eventlog.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		wantLeased(t, other, name, true)
	}
}

// A lease that names no holder is damage. A sweep removes it.
func TestHostileLease(t *testing.T) {
	servers := natstest.Start(t, natstest.Options{})
	log := openLog(t, jetstream.Options{Connect: servers.Connect})
	take(t, log, "x")
	nc, err := servers.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	store := log.Store().(*jetstream.Store)
	for _, body := range []string{"", "x", ".", "*.x", ">", "AAAA", "AAAAAAAAAAAAAAAAAAAAAA==.x", "AAAAAAAAAAAAAAAAAAAAAB.x"} {
		m := nats.NewMsg("convlog.control.lease." + base64.RawURLEncoding.EncodeToString([]byte("y")))
		m.Data = []byte(body)
		if _, err := nc.RequestMsgWithContext(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		var corrupt *eventlog.CorruptError
		if _, err := store.Lease(t.Context(), "y"); !errors.As(err, &corrupt) {
			t.Errorf("a lease with the body %q: got error %v, want a CorruptError", body, err)
		}
		if _, err := store.Leased(t.Context(), "y"); !errors.As(err, &corrupt) {
			t.Errorf("a look at a lease with the body %q: got error %v, want a CorruptError", body, err)
		}
		wantLeftovers(t, log, true, 1)
	}
	if err := take(t, log, "y").Release(); err != nil {
		t.Error(err)
	}
	wantLeased(t, log, "x", true)
}
