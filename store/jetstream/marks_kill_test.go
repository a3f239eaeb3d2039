package jetstream_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jetstream"
)

// mortal ends connections after a number of writes, together with the context of the call
// that writes.
type mortal struct {
	left atomic.Int64
	kill context.CancelFunc
}

func (m *mortal) wrap(conn net.Conn) net.Conn { return &mortalConn{conn, m} }

type mortalConn struct {
	net.Conn
	*mortal
}

func (c *mortalConn) Write(p []byte) (int, error) {
	if c.left.Add(-1) < 0 {
		c.kill()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// operation changes the session of the events. more is an event to add.
type operation func(ctx context.Context, store *jetstream.Store, events []event.Event, more suite.Line) error

// A process dies at any write to the server, in any operation that changes marks. The users of
// the blobs are exactly the events that list them, at once and after the next sweep, which
// leaves no digest of erased events.
func TestKilledWhileMarksChange(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	healthy := openLog(t, jetstream.Options{Connect: servers.Connect})
	operations := map[string]operation{
		"append": func(ctx context.Context, store *jetstream.Store, events []event.Event, more suite.Line) error {
			head := suite.HeadOf(events)
			return store.Append(ctx, events[0].SessionID, head, suite.ChainAfter(events[0].SessionID, head, more), false)
		},
		"begin": func(ctx context.Context, store *jetstream.Store, events []event.Event, more suite.Line) error {
			session := events[0].SessionID + " begun"
			return store.Append(ctx, session, event.Head{}, suite.ChainAfter(session, event.Head{}, begun, more), false)
		},
		"rewrite": func(ctx context.Context, store *jetstream.Store, events []event.Event, more suite.Line) error {
			head := suite.HeadOf(events)
			redacted := []event.Event{suite.RedactedLine(events[1]), suite.RedactedLine(events[3])}
			return store.Rewrite(ctx, events[0].SessionID, head, redacted, suite.ChainAfter(events[0].SessionID, head, more))
		},
		"remove": func(ctx context.Context, store *jetstream.Store, events []event.Event, _ suite.Line) error {
			return store.RemoveSession(ctx, events[0].SessionID, suite.HeadOf(events))
		},
		"replace": func(ctx context.Context, store *jetstream.Store, events []event.Event, more suite.Line) error {
			version, err := store.Version(ctx, events[0].SessionID)
			if err == nil {
				_, err = store.Replace(ctx, events[0].SessionID, version, suite.Sequence(suite.ChainAfter(events[0].SessionID, event.Head{}, begun, more)))
			}
			return err
		},
	}
	number := 0
	for name, run := range operations {
		died := 0
		for ; ; died += testsize.Pick(12, 8, 1) {
			numbers := []int{number, number + 1, number + 2, number + 3}
			number += len(numbers)
			if killed := killAfter(t, servers, healthy, died, fmt.Sprint(name, " ", died), numbers, run); !killed {
				break
			}
		}
		if died < 3 {
			t.Errorf("%s: only %d writes to the server", name, died)
		}
	}
}

// begun is the first event of a run of session p.
var begun = suite.Line{Typ: string(event.SessionStarted), Data: `{"parent":{"session_id":"p"}}`}

// killAfter runs an operation of a process that dies after some writes. It reports whether the
// process died.
func killAfter(t *testing.T, servers *natstest.Cluster, healthy *eventlog.Log, writes int, session string, numbers []int, run operation) (killed bool) {
	t.Helper()
	for _, n := range numbers {
		if _, err := healthy.PutBlob(t.Context(), strings.NewReader(fmt.Sprint("body ", n))); err != nil {
			t.Fatal(err)
		}
	}
	store := healthy.Store().(*jetstream.Store)
	events := suite.ChainAfter(session, event.Head{}, begun, listing(numbers[0], numbers[1]), listing(numbers[0]), listing(numbers[2]))
	if err := store.Append(t.Context(), session, event.Head{}, events, false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := &mortal{kill: cancel}
	server.left.Store(1 << 30)
	victim, err := jetstream.New("", jetstream.Options{Connect: connectTo(servers.Nodes[0], server.wrap)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { go victim.Close() }() // it waits for answers of the dead connection
	if _, err := victim.Version(ctx, session); err != nil {
		t.Fatal(err)
	}
	server.left.Store(int64(writes))
	err = run(ctx, victim, events, listing(numbers[1], numbers[3]))
	if killed = ctx.Err() != nil; err != nil && !killed {
		t.Fatalf("%s: %v", session, err)
	}
	wantMarks(t, store, session, numbers)
	sweep(t, store)
	wantMarks(t, store, session, numbers)
	return killed
}

// wantMarks checks the users of the blobs with the numbers, and the runs of session p with a
// prefix, against the events.
func wantMarks(t *testing.T, store *jetstream.Store, prefix string, numbers []int) {
	t.Helper()
	var users, got, runs, found []string
	var digests []event.Digest
	for _, n := range numbers {
		digests = append(digests, digestOf(n))
	}
	for info, err := range store.List(t.Context(), eventlog.Part{Prefix: prefix}) {
		if err != nil || info.Err != nil {
			t.Fatal(err, info.Err)
		}
		runs = append(runs, info.ID)
		for e, err := range store.Read(t.Context(), info.ID, eventlog.Span{}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range e.Blobs() {
				users = append(users, fmt.Sprint(d, info.ID, e.Seq))
			}
		}
	}
	for u, err := range store.BlobUsers(t.Context(), digests) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(u.Digest, u.Session, u.Seq))
	}
	for info, err := range store.Related(t.Context(), "p") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(info.ID, prefix) {
			found = append(found, info.ID)
		}
	}
	slices.Sort(users)
	slices.Sort(got)
	if !slices.Equal(users, got) || !slices.Equal(runs, found) {
		t.Errorf("%s: got users %v, want %v; got runs %v, want %v", prefix, got, users, found, runs)
	}
}
