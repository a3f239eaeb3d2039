package jetstream_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jetstream"
)

// openLog opens a log, which is closed at the end of the test.
func openLog(t testing.TB, options jetstream.Options) *eventlog.Log {
	t.Helper()
	store, err := jetstream.New("", options)
	if err != nil {
		t.Fatal(err)
	}
	log := eventlog.Open(store)
	t.Cleanup(func() { log.Close() })
	return log
}

// proxied starts a server, and returns options for connections through its proxy and for
// direct ones.
func proxied(t testing.TB) (servers *natstest.Cluster, through, direct jetstream.Options) {
	servers = natstest.Shared(t, true)
	through = jetstream.Options{Connect: servers.Connect}
	direct = jetstream.Options{Connect: connectTo(servers.Nodes[0], nil)}
	return servers, through, direct
}

// connectTo returns a function that connects to a node past its proxy. wrap, if there is
// one, wraps its connections.
func connectTo(node *natstest.Node, wrap func(net.Conn) net.Conn) func(options ...nats.Option) (*nats.Conn, error) {
	return func(options ...nats.Option) (*nats.Conn, error) {
		return nats.Connect(node.DirectURL(), append(options, nats.SetCustomDialer(dialer{wrap}), nats.IgnoreDiscoveredServers())...)
	}
}

// dialer wraps the connections that it makes.
type dialer struct{ wrap func(net.Conn) net.Conn }

// Dial implements nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if err == nil && d.wrap != nil {
		conn = d.wrap(conn)
	}
	return conn, err
}

func wantError(t testing.TB, what string, want, got error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// The answers to an append are lost until its context ends: the outcome is unknown. If an
// answer arrives in time, the message that was sent again is stored once.
func TestSwallowedAnswer(t *testing.T) {
	t.Parallel()
	servers, through, direct := proxied(t)
	proxy := servers.Nodes[0].Clients()
	log, other := openLog(t, through), openLog(t, direct)
	head, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("one"))
	if err != nil {
		t.Fatal(err)
	}
	lost := suite.BatchAfter("s", head, 1)
	ctx, cancel := context.WithCancel(t.Context())
	proxy.Swallow(true)
	go func() {
		for h, _ := other.Head(ctx, "s"); h == head && ctx.Err() == nil; h, _ = other.Head(ctx, "s") {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	wantError(t, "an append without an answer", eventlog.ErrUnknownOutcome, log.Store().Append(ctx, "s", head, lost, false))
	again := make(chan error)
	next := suite.BatchAfter("s", suite.HeadOf(lost), 1)
	go func() { again <- log.Store().Append(t.Context(), "s", suite.HeadOf(lost), next, false) }()
	time.Sleep(300 * time.Millisecond) // a sending without an answer
	proxy.Swallow(false)
	proxy.Cut()
	if err := <-again; err != nil {
		t.Errorf("an append that is sent again: %v", err)
	}
	wantError(t, "the lost append again", eventlog.ErrConflict, log.Store().Append(t.Context(), "s", head, lost, false))
	suite.CheckEvents(t, other, "s", 3)
}

// A holder of the store lock that is cut off loses it. Then its late writes change nothing.
func TestLockLost(t *testing.T) {
	t.Parallel()
	servers, through, direct := proxied(t)
	through.LeaseTime = time.Second
	holder, other := openLog(t, through), openLog(t, direct)
	events := suite.BatchAfter("s", event.Head{}, 2)
	head := suite.HeadOf(events)
	if err := holder.Store().Append(t.Context(), "s", event.Head{}, events, false); err != nil {
		t.Fatal(err)
	}
	body, err := holder.PutBlob(t.Context(), strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	store := holder.Store().(*jetstream.Store)
	held, unlock, err := store.Lock(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	servers.Nodes[0].Clients().Refuse(true)
	servers.Nodes[0].Clients().Cut()
	<-held.Done()
	wantError(t, "the context of the lock", eventlog.ErrLockLost, context.Cause(held))
	if err := other.Hold(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	servers.Nodes[0].Clients().Refuse(false)
	late := context.WithoutCancel(held)
	add := suite.BatchAfter("s", head, 1)
	wantError(t, "append", eventlog.ErrLockLost, store.Append(late, "s", head, add, false))
	wantError(t, "rewrite", eventlog.ErrLockLost, store.Rewrite(late, "s", head, []event.Event{suite.RedactedLine(events[0])}, add))
	wantError(t, "remove session", eventlog.ErrLockLost, store.RemoveSession(late, "s", head))
	wantError(t, "remove blobs", eventlog.ErrLockLost, store.RemoveBlobs(late, []event.Digest{body.Blob}))
	wantError(t, "record an erasure", eventlog.ErrLockLost, store.SetErasing(late, []event.Digest{body.Blob}))
	suite.CheckEvents(t, other, "s", 2)
	r, err := other.OpenBlob(t.Context(), body.Blob)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

// The server stores the message that makes a blob visible, and refuses it when it is sent
// again. The blob is readable, also if one with the same body was stored before.
func TestRefusedBlob(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	log := openLog(t, jetstream.Options{Connect: servers.Connect})
	store := log.Store().(*jetstream.Store)
	for _, what := range []string{"a new body", "a stored body"} {
		d, err := store.PutBlobTwice(t.Context(), "the body")
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		r, err := log.OpenBlob(t.Context(), d)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		body, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || string(body) != "the body" {
			t.Errorf("%s: got %q, error %v", what, body, err)
		}
	}
}

// A process dies after it has replaced lines, and before it erases the old ones. Readers
// see the new lines. The next holder of the lock finishes the erasure.
func TestInterruptedRewrite(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	store := openLog(t, jetstream.Options{Connect: servers.Connect}).Store().(*jetstream.Store)
	const secret = "the-secret-of-the-old-line"
	for _, session := range []string{"swept", "asked for again"} {
		events := suite.ChainAfter(session, event.Head{}, suite.Line{Data: "1"}, suite.Line{Data: `"` + secret + `"`}, suite.Line{Data: "3"})
		if err := store.Append(t.Context(), session, event.Head{}, events, false); err != nil {
			t.Fatal(err)
		}
		head, redacted := suite.HeadOf(events), suite.RedactedLine(events[1])
		add := suite.BatchAfter(session, head, 1)
		if err := store.Interrupted(t.Context(), session, head, []event.Event{redacted}, add); err != nil {
			t.Fatal(err)
		}
		want := suite.LinesOf([]event.Event{events[0], redacted, events[2], add[0]})
		wantLines(t, store, session, want)
		if unfinished, err := store.Erasing(t.Context()); err != nil || !unfinished.Bytes {
			t.Errorf("the unfinished erasure: %+v, %v", unfinished, err)
		}
		if holds(servers, "convlog", secret) == "" {
			t.Error("the interrupted rewrite has erased the old line")
		}
		locked, unlock, err := store.Lock(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		if session == "swept" {
			_, err = suite.Collect(store.Sweep(locked, true))
		} else {
			err = store.Sync(locked, session)
		}
		unlock()
		if err != nil {
			t.Error(err)
		}
		if unfinished, err := store.Erasing(t.Context()); err != nil || !unfinished.Done() {
			t.Errorf("the finished erasure: %+v, %v", unfinished, err)
		}
		if where := holds(servers, "convlog", secret); where != "" {
			t.Errorf("the old line is in %s", where)
		}
		wantLines(t, store, session, want)
	}
}

// wantLines checks the lines of a session, in both directions.
func wantLines(t testing.TB, store eventlog.Store, session string, want []string) {
	t.Helper()
	for _, backward := range []bool{false, true} {
		events, err := suite.Collect(store.Read(t.Context(), session, eventlog.Span{Backward: backward}))
		if backward {
			slices.Reverse(events)
		}
		if got := suite.LinesOf(events); err != nil || !slices.Equal(got, want) {
			t.Errorf("session %q, backward %v: got %q, %v; want %q", session, backward, got, err, want)
		}
	}
}

// The servers lose acknowledged messages. A store that knows them does not read the session
// as if it ended before them, and appends nothing in their place.
func TestRolledBack(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{})
	options := jetstream.Options{Connect: servers.Connect}
	log, node := openLog(t, options), servers.Nodes[0]
	for _, text := range []string{"one", "two"} {
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(node.Folder())); err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	if err := suite.UntilStored(t.Context(), log, "s", event.UserMessage("three")); err != nil {
		t.Fatal(err)
	}
	head, err := log.Head(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(node.Kill(), os.RemoveAll(node.Folder()), os.CopyFS(node.Folder(), os.DirFS(backup)), node.Start()); err != nil {
		t.Fatal(err)
	}
	_, err = suite.Collect(log.Store().Read(t.Context(), "s", eventlog.Span{From: 2}))
	wantRolledBack(t, "read", err)
	err = suite.UntilStored(t.Context(), log, "s", event.UserMessage("four"))
	var lost *eventlog.RolledBackError
	if !errors.As(err, &lost) || lost.Head != head {
		t.Errorf("append: got error %v, want the lost head %v", err, head)
	}
	_, err = log.Head(t.Context(), "s")
	wantRolledBack(t, "head", err)
	// If the first store has told the servers of the lost event, another store names it.
	events, err := suite.Collect(openLog(t, options).Store().Read(t.Context(), "s", eventlog.Span{}))
	if err != nil && !errors.Is(err, eventlog.ErrCorrupt) || len(events) != 2 {
		t.Errorf("another store reads %d events, %v; want 2", len(events), err)
	}
}

// A lease of a store that is cut off ends, in its process and for others, by the clock of
// the server.
func TestLeaseExpires(t *testing.T) {
	t.Parallel()
	servers, through, direct := proxied(t)
	through.LeaseTime, direct.LeaseTime = time.Second, time.Second
	suite.CheckLostLease(t, openLog(t, through).Store(), openLog(t, direct).Store(), servers.Nodes[0].Clients(), 1500*time.Millisecond)
}

func wantRolledBack(t *testing.T, what string, err error) {
	t.Helper()
	if _, ok := errors.AsType[*eventlog.RolledBackError](err); !ok {
		t.Errorf("%s: got error %v, want a RolledBackError", what, err)
	}
}
