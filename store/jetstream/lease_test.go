package jetstream_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
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
	t.Parallel()
	servers := natstest.Shared(t, false)
	options := jetstream.Options{Connect: servers.Connect, LeaseTime: 3 * time.Second}
	log := openLog(t, options)
	var leases []eventlog.Lease
	for n := range testsize.Pick(100, 200, 1000) {
		leases = append(leases, take(t, log, fmt.Sprint(n)))
	}
	before := controlMessages(t, servers)
	time.Sleep(options.LeaseTime)
	if stored := controlMessages(t, servers) - before; stored == 0 || stored >= 20 {
		t.Errorf("%d leases stored %d messages in a lease time, want 1 to 19", len(leases), stored)
	}
	for n, lease := range leases {
		wantOpen(t, fmt.Sprint("lease ", n), lease)
	}
}

// rawJetStream is a connection without a store.
func rawJetStream(t testing.TB, servers *natstest.Cluster) nats.JetStreamContext {
	t.Helper()
	nc, err := connectTo(servers.Nodes[0], nil)()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// leaseSubject is the subject of a lease.
func leaseSubject(name string) string {
	return "convlog.control.lease." + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// controlMessages is the number of messages that the control stream has ever stored.
func controlMessages(t testing.TB, servers *natstest.Cluster) uint64 {
	t.Helper()
	info, err := rawJetStream(t, servers).StreamInfo("convlog_control")
	if err != nil {
		t.Fatal(err)
	}
	return info.State.LastSeq
}

// The leases of a store that died are free after its lease time. Until a sweep, or the next
// holder, their messages are leftovers.
func TestLeasesOfADeadStore(t *testing.T) {
	t.Parallel()
	servers, through, direct := proxied(t)
	through.LeaseTime = time.Second
	dying, other := openLog(t, through), openLog(t, direct)
	for _, name := range []string{"a", "b", "c"} {
		take(t, dying, name)
	}
	wantLeftovers(t, other, true, 0)
	servers.Nodes[0].Clients().Refuse(true)
	servers.Nodes[0].Clients().Cut()
	for held := true; held; time.Sleep(10 * time.Millisecond) {
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
	t.Parallel()
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
	_, err = log.Store().(*jetstream.Store).Lease(t.Context(), "lost")
	wantError(t, "the same lease again", eventlog.ErrUnavailable, err)
	released := make(chan error)
	for range 2 {
		go func() { released <- held.Release() }()
	}
	<-held.Lost()
	for range 2 {
		wantError(t, "a release without an answer", eventlog.ErrUnavailable, <-released)
	}
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

// The server loses the message of a lease, and another process takes the lease. The first
// holder notices that when it renews.
func TestLeaseMessageGone(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	options := jetstream.Options{Connect: servers.Connect, LeaseTime: 3 * time.Second}
	log, other := openLog(t, options), openLog(t, options)
	gone, kept := take(t, log, "gone"), take(t, log, "kept")
	js := rawJetStream(t, servers)
	if err := js.PurgeStream("convlog_control", &nats.StreamPurgeRequest{Subject: leaseSubject("gone")}); err != nil {
		t.Fatal(err)
	}
	next := take(t, other, "gone")
	<-gone.Lost()
	if err := gone.Release(); err != nil {
		t.Error(err)
	}
	time.Sleep(options.LeaseTime)
	wantOpen(t, "the lease of the same store", kept)
	wantOpen(t, "the lease of the other store", next)
	wantLeased(t, other, "gone", true)
	if err := next.Release(); err != nil {
		t.Error(err)
	}
	take(t, log, "gone")
}

func wantOpen(t testing.TB, what string, lease eventlog.Lease) {
	t.Helper()
	select {
	case <-lease.Lost():
		t.Errorf("%s is lost", what)
	default:
	}
}

// The server renews a holder, and its answer is lost. The holder sends the renewal again, and
// the server refuses it. The leases stay.
func TestLeaseRenewalWithoutAnswer(t *testing.T) {
	t.Parallel()
	servers, through, direct := proxied(t)
	proxy := servers.Nodes[0].Clients()
	through.LeaseTime = 6 * time.Second
	log, other := openLog(t, through), openLog(t, direct)
	lease := take(t, log, "x")
	proxy.Swallow(true)
	untilRenewed := func() {
		for stored := controlMessages(t, servers); controlMessages(t, servers) == stored; {
			select {
			case <-lease.Lost():
				t.Fatal("the lease is lost")
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	untilRenewed()
	proxy.Swallow(false)
	proxy.Cut()
	for range 2 {
		untilRenewed()
	}
	wantOpen(t, "the lease", lease)
	wantLeased(t, other, "x", true)
}

// A lease is taken after the server has stored a renewal, and before its answer arrives. The
// replica that is asked for the messages of the leases has the renewal, but not the lease.
func TestLeaseTakenDuringRenewal(t *testing.T) {
	t.Parallel()
	f, through, _ := behindFollower(t)
	through.LeaseTime = 3 * time.Second
	log := openLog(t, through)
	take(t, log, "a")
	renewed, taken, checked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var renewal, asked atomic.Uint64
	pass := sync.OnceFunc(func() { close(checked) })
	f.mu.Lock()
	f.pick = func(sent, got *nats.Msg) bool {
		switch {
		case renewal.Load() == 0 && strings.HasPrefix(sent.Subject, "convlog.control.holder."):
			var stored nats.PubAck
			if err := json.Unmarshal(got.Data, &stored); err != nil {
				t.Error(err)
			}
			renewal.Store(stored.Sequence)
			close(renewed)
			<-taken
		case strings.HasPrefix(sent.Subject, "$JS.API.DIRECT.GET.") && strings.Contains(string(sent.Data), leaseSubject("b")):
			end := got.Header.Get("Status") == "204"
			switch {
			case asked.Load() == replays && end:
				pass()
			case asked.Load() == replays:
			case end:
				asked.Add(1)
				got.Header.Set("Nats-UpTo-Sequence", fmt.Sprint(renewal.Load()))
			default:
				return got.Header.Get("Nats-Subject") != leaseSubject("b")
			}
		}
		return true
	}
	f.mu.Unlock()
	<-renewed
	b := take(t, log, "b")
	close(taken)
	select {
	case <-b.Lost():
		t.Error("the lease is lost")
	case <-checked:
	}
}

// The answer to the first message of a holder comes when it may have expired.
func TestLateHolder(t *testing.T) {
	t.Parallel()
	servers, through, _ := proxied(t)
	through.LeaseTime = time.Second
	log, proxy := openLog(t, through), servers.Nodes[0].Clients()
	take(t, openLog(t, through), "y")
	wantLeased(t, log, "y", true)
	proxy.Delay(through.LeaseTime * 2 / 3)
	late := make(chan error, 1)
	go func() {
		_, err := log.Store().(*jetstream.Store).Lease(t.Context(), "x")
		late <- err
	}()
	js := rawJetStream(t, servers)
	for !stored(t, js, "convlog.control.holder.*", 2) && len(late) == 0 { // a busy machine may be later than the lease
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(through.LeaseTime / 10) // the answer is under way
	proxy.Delay(0)
	wantError(t, "a late lease", eventlog.ErrUnavailable, <-late)
}

// untilStored waits until n subjects that match a filter have messages.
func untilStored(t testing.TB, servers *natstest.Cluster, filter string, n int) {
	t.Helper()
	for js := rawJetStream(t, servers); !stored(t, js, filter, n); {
		time.Sleep(10 * time.Millisecond)
	}
}

// stored reports whether n subjects that match a filter have messages.
func stored(t testing.TB, js nats.JetStreamContext, filter string, n int) bool {
	t.Helper()
	info, err := js.StreamInfo("convlog_control", &nats.StreamInfoRequest{SubjectsFilter: filter})
	if err != nil {
		t.Fatal(err)
	}
	return len(info.State.Subjects) == n
}

// Close ends the leases before it waits for a lock whose storing is not answered.
func TestCloseEndsLeases(t *testing.T) {
	t.Parallel()
	servers, through, direct := proxied(t)
	through.LeaseTime = 2 * time.Second
	log, other, proxy := openLog(t, through), openLog(t, direct), servers.Nodes[0].Clients()
	lease := take(t, log, "x")
	proxy.Delay(300 * time.Millisecond)
	done := make(chan error, 2)
	go func() {
		_, _, err := log.Store().(*jetstream.Store).Lock(context.Background(), false)
		done <- err
	}()
	untilStored(t, servers, "convlog.control.lock.shared.*", 1)
	proxy.Swallow(true)
	go func() { done <- log.Close() }()
	for {
		_, err := other.Store().(*jetstream.Store).Lease(t.Context(), "x")
		if err == nil {
			break
		}
		wantError(t, "a held lease", eventlog.ErrLeased, err)
		time.Sleep(5 * time.Millisecond)
	}
	select {
	case <-lease.Lost():
	default:
		t.Error("another process has the lease, and it is not lost")
	}
	if testsize.Of() == testsize.Long { // without answers, Close takes 10 s
		<-done
		<-done
	}
}

// A lease that names no holder is damage. A sweep removes it.
func TestHostileLease(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	log := openLog(t, jetstream.Options{Connect: servers.Connect})
	take(t, log, "x")
	nc, err := servers.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	store := log.Store().(*jetstream.Store)
	for _, body := range []string{"", "x", ".", "*.x", ">", "AAAA", "AAAAAAAAAAAAAAAAAAAAAA==.x", "AAAAAAAAAAAAAAAAAAAAAB.x"} {
		m := nats.NewMsg(leaseSubject("y"))
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
