package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
)

var networkCases = []testCase{
	{
		Name:        "unavailable",
		Explanation: "Without a server every call is ErrUnavailable, and nothing is written.",
		Needs:       []suite.Need{suite.Networks},
		Run:         testUnavailable,
	},
	{
		Name:        "parted",
		Explanation: "While the network is parted, a call ends with its context, or before with ErrUnavailable. Afterwards the store continues.",
		Needs:       []suite.Need{suite.Networks},
		Run:         testParted,
	},
	{
		Name:        "connections cut",
		Explanation: "Connections break again and again while several writers append and retry. Each event is stored once.",
		Needs:       []suite.Need{suite.Networks},
		Run:         testConnectionsCut,
	},
	{
		Name:        "swallowed answer",
		Explanation: "The answer to an append is lost: the outcome is unknown, and the same append again is a conflict.",
		Needs:       []suite.Need{suite.Networks},
		Run:         testSwallowedAnswer,
	},
}

// beside opens a log whose connections do not break.
func (t *env) beside() *eventlog.Log {
	t.Helper()
	s, err := t.Harness.OpenBeside()
	t.Must(err)
	t.Cleanup(func() { s.Close() })
	return t.LogOver(s)
}

func testUnavailable(t *env) {
	l, network := t.Main(), t.Harness.Network
	head := t.Append(l, "s", eventlog.New(), suite.Note(1))
	network.Refuse(true)
	defer network.Refuse(false)
	network.Cut()
	unused := t.Second()
	_ = l.Ping(t.Ctx) // finds the broken connections
	uses := usesOf(l, unused, head)
	names := slices.Collect(maps.Keys(uses))
	errs := suite.Concurrently(len(names), func(i int) error { return uses[names[i]](t.Ctx) })
	for i, err := range errs {
		if !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("%s: got error %v, want ErrUnavailable", names[i], err)
		}
	}
	suite.CheckEvents(t, t.beside(), "s", 1)
}

func testParted(t *env) {
	l, unused, network := t.Main(), t.Second(), t.Harness.Network
	head := t.Append(l, "s", eventlog.New(), suite.Note(1))
	part := func(name string, use func(ctx context.Context) error) {
		network.Stall(true)
		ctx, cancel := context.WithTimeout(t.Ctx, 50*time.Millisecond)
		// A call may find a connection that an earlier round has cut.
		if err := use(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("%s: got error %v, want an exceeded deadline or ErrUnavailable", name, err)
		}
		cancel()
		network.Cut() // the server never gets the bytes
		network.Stall(false)
	}
	for name, use := range usesOf(l, unused, head) {
		part(name, use)
	}
	if _, ok := eventlog.As[eventlog.Locker](l.Store()); ok {
		part("a held lock", func(ctx context.Context) error {
			return l.Hold(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		})
	}
	t.Must(suite.UntilStored(t.Ctx, l, "s", suite.Note(2)))
	suite.CheckEvents(t, t.beside(), "s", 2)
}

// usesOf returns calls that need the server. None of them may change session "s", which
// has the head head.
func usesOf(l, unused *eventlog.Log, head event.Head) map[string]func(context.Context) error {
	appendTo := func(l *eventlog.Log, x eventlog.Expect) func(context.Context) error {
		return func(ctx context.Context) error { _, err := l.Append(ctx, "s", x, suite.Note(2)); return err }
	}
	uses := map[string]func(context.Context) error{
		"append":         appendTo(l, eventlog.Any()),
		"durable append": appendTo(l, eventlog.Any().Durable()),
		"another log":    appendTo(unused, eventlog.Any()),
		"head":           func(ctx context.Context) error { _, err := l.Head(ctx, "s"); return err },
		"list":           func(ctx context.Context) error { _, err := suite.Collect(l.Sessions(ctx)); return err },
		"read":           func(ctx context.Context) error { _, err := suite.Collect(l.Read(ctx, "s", eventlog.All())); return err },
		"watch":          func(ctx context.Context) error { _, err := suite.Collect(l.Watch(ctx, "s", 1)); return err },
	}
	if s, ok := eventlog.As[eventlog.Notifier](l.Store()); ok {
		uses["changes"] = func(ctx context.Context) error { _, err := suite.Collect(s.Changes(ctx)); return err }
	}
	if s, ok := eventlog.As[eventlog.Blobs](l.Store()); ok {
		uses["put a blob"] = func(ctx context.Context) error { _, _, err := s.PutBlob(ctx, strings.NewReader("body")); return err }
	}
	if s, ok := eventlog.As[eventlog.Leaser](l.Store()); ok {
		uses["lease"] = func(ctx context.Context) error { _, err := s.Lease(ctx, "x"); return err }
	}
	if s, ok := eventlog.As[eventlog.Syncer](l.Store()); ok {
		uses["sync"] = func(ctx context.Context) error { return s.Sync(ctx, "s") }
	}
	if s, ok := eventlog.As[eventlog.Eraser](l.Store()); ok {
		uses["remove"] = func(ctx context.Context) error { return s.RemoveSession(ctx, "s", head) }
	}
	if s, ok := eventlog.As[eventlog.Locker](l.Store()); ok {
		uses["lock"] = func(ctx context.Context) error { _, _, err := s.Lock(ctx, true); return err }
	}
	return uses
}

func testConnectionsCut(t *env) {
	const writers, sessions = 8, 3
	events := testsize.Pick(5, 15, 50)
	l := t.Main()
	var stored atomic.Int64
	errs := suite.Concurrently(writers, func(w int) error {
		for n := range events {
			if err := suite.UntilStored(t.Ctx, l, fmt.Sprint("s", w%sessions), suite.User(fmt.Sprint(w, n))); err != nil {
				return fmt.Errorf("event %d of writer %d: %w", n, w, err)
			}
			if stored.Add(1)%20 == 0 {
				t.Harness.Network.Cut()
			}
		}
		return nil
	})
	t.Must(errors.Join(errs...))
	found := map[string]int{}
	beside := t.beside()
	for s := range sessions {
		for _, e := range t.Read(beside, fmt.Sprint("s", s), eventlog.All()) {
			found[string(e.Data)]++
		}
	}
	for data, n := range found {
		if n != 1 {
			t.Errorf("%s is stored %d times", data, n)
		}
	}
	t.WantEqual("stored events", writers*events, len(found))
}

func testSwallowedAnswer(t *env) {
	l, beside := t.Main(), t.beside()
	for range 50 {
		for range 2 { // the connection is open, and knows the request
			t.Must(suite.UntilStored(t.Ctx, l, "s", suite.Note(1)))
		}
		head := t.Head(beside, "s")
		lost := suite.BatchAfter("s", head, 1)
		err := t.appendSwallowed(l, beside, head, lost)
		if err == nil {
			t.Fatal("an append without an answer succeeded")
		}
		if t.Head(beside, "s") == head {
			continue // the connection broke before the append was sent
		}
		t.WantErr(eventlog.ErrUnknownOutcome, err)
		_ = l.Ping(t.Ctx) // finds a broken connection
		t.WantErr(eventlog.ErrConflict, l.Store().Append(t.Ctx, "s", head, lost, false))
		suite.CheckEvents(t, beside, "s", head.Seq+1)
		return
	}
	t.Error("no append reached the server")
}

// appendSwallowed appends events while the answers of the server are lost.
func (t *env) appendSwallowed(l, beside *eventlog.Log, head event.Head, events []event.Event) error {
	network := t.Harness.Network
	network.Swallow(true)
	ctx, cancel := context.WithTimeout(t.Ctx, 300*time.Millisecond+10*t.Harness.Latency)
	defer cancel()
	go func() {
		for h, _ := beside.Head(ctx, "s"); h == head && ctx.Err() == nil; h, _ = beside.Head(ctx, "s") {
			time.Sleep(time.Millisecond)
		}
		cancel() // the events are stored, and the answer is on its way
	}()
	err := l.Store().Append(ctx, "s", head, events, false)
	network.Swallow(false)
	network.Cut()
	return err
}
