package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
)

var changeCases = []testCase{
	{
		Name:        "begin",
		Explanation: "Notifier: the first element is \"\", in an empty store too. If nothing changes, nothing else follows. The sequence ends with its context.",
		Needs:       []suite.Need{suite.Notifier},
		Run:         testChangesBegin,
	},
	{
		Name:        "own changes",
		Explanation: "Notifier: appends, a new session, a rewrite and a removal through the same handle are reported.",
		Needs:       []suite.Need{suite.Notifier, suite.Eraser},
		Run: func(t *env) {
			s := t.Store()
			testChanges(t, s, s)
		},
	},
	{
		Name:        "changes of other handles",
		Explanation: "Notifier: appends, a new session, a rewrite and a removal through another handle are reported.",
		Needs:       []suite.Need{suite.Notifier, suite.Eraser, suite.Handles},
		Run:         func(t *env) { testChanges(t, t.Store(), t.Open()) },
	},
	{
		Name:        "many sessions",
		Explanation: "Notifier: changes of many sessions at the same time are all reported, to several listeners.",
		Needs:       []suite.Need{suite.Notifier, suite.Handles},
		Run:         testManyChanges,
	},
	{
		Name:        "after a listing",
		Explanation: "Notifier: a caller that lists all sessions at each \"\" and reads each reported session knows all heads, whenever it begins.",
		Needs:       []suite.Need{suite.Notifier, suite.Handles},
		Run:         testChangesAndListing,
	},
	{
		Name:        "slow caller",
		Explanation: "Notifier: a caller that stops listening for a time blocks no append, and gets each change afterwards.",
		Needs:       []suite.Need{suite.Notifier},
		Run:         testSlowListener,
	},
	{
		Name:        "closed",
		Explanation: "Notifier: closing the handle ends the sequence with ErrClosed.",
		Needs:       []suite.Need{suite.Notifier},
		Run:         testChangesClosed,
	},
}

// listener is a running call of Changes.
type listener struct {
	t       *env
	changed chan string
	end     chan error
	stop    context.CancelFunc
}

// listen begins to listen and waits for the first element.
func (t *env) listen(s eventlog.Store) *listener {
	t.Helper()
	ctx, stop := context.WithCancel(t.Ctx)
	l := &listener{t: t, changed: make(chan string), end: make(chan error, 1), stop: stop}
	notifier := suite.Ability[eventlog.Notifier](t, s)
	go func() {
		for session, err := range notifier.Changes(ctx) {
			if err != nil {
				l.end <- err
				return
			}
			select {
			case l.changed <- session:
			case <-ctx.Done():
			}
		}
		l.end <- errors.New("the sequence ended without an error")
	}()
	t.Cleanup(stop)
	t.WantEqual("first element", "", l.next())
	return l
}

// next returns the next element.
func (l *listener) next() string {
	l.t.Helper()
	select {
	case session := <-l.changed:
		return session
	case err := <-l.end:
		l.t.Fatalf("Changes ended: %v", err)
		return ""
	}
}

// want waits until the sessions, or any session, are reported.
func (l *listener) want(sessions ...string) {
	l.t.Helper()
	missing := make(map[string]bool)
	for _, session := range sessions {
		missing[session] = true
	}
	for len(missing) > 0 {
		session := l.next()
		if session == "" {
			return
		}
		delete(missing, session)
	}
}

// wantEnd checks the error at the end of the sequence.
func (l *listener) wantEnd(want error) {
	l.t.Helper()
	for {
		select {
		case <-l.changed:
		case err := <-l.end:
			l.t.WantErr(want, err)
			return
		}
	}
}

func testChangesBegin(t *env) {
	l := t.listen(t.Store())
	select {
	case session := <-l.changed:
		t.Errorf("an empty store reports a change of %q", session)
	case <-t.shortTime():
	}
	l.stop()
	l.wantEnd(context.Canceled)
	notifier := suite.Ability[eventlog.Notifier](t, t.Store())
	_, err := suite.Collect(notifier.Changes(t.EndedContext()))
	t.WantErr(context.Canceled, err)
}

// shortTime ends after a time in which a store polls several times.
func (t *env) shortTime() <-chan struct{} {
	ctx, cancel := t.ShortContext()
	t.Cleanup(cancel)
	return ctx.Done()
}

// testChanges writes through w and listens through s.
func testChanges(t *env, s, w eventlog.Store) {
	t.Fill(t.Main(), "old", 1)
	l := t.listen(s)
	events := suite.BatchAfter("a", event.Head{}, 3)
	head := t.AppendLines(w, event.Head{}, events)
	l.want("a")
	for range 5 {
		head = t.AppendLines(w, head, suite.BatchAfter("a", head, 1))
		l.want("a")
	}
	eraser := suite.Ability[eventlog.Eraser](t, w)
	add := suite.BatchAfter("a", head, 1)
	t.Must(eraser.Rewrite(t.Ctx, "a", head, []event.Event{suite.RedactedLine(events[1])}, add))
	l.want("a")
	t.AppendLines(w, event.Head{}, suite.BatchAfter("A long name / of a session", event.Head{}, 1))
	l.want("A long name / of a session")
	t.Must(eraser.RemoveSession(t.Ctx, "a", suite.HeadOf(add)))
	l.want("a")
	t.AppendLines(w, event.Head{}, suite.BatchAfter("a", event.Head{}, 1))
	l.want("a")
}

func testManyChanges(t *env) {
	const writers = 2
	s := t.Store()
	first, second := t.listen(s), t.listen(s)
	handles := []eventlog.Store{s, t.Open()}
	var ids []string
	for n := range writers * testsize.Fewer(200) {
		ids = append(ids, fmt.Sprintf("session %d", n))
	}
	written := make(chan error, 1)
	go func() {
		written <- errors.Join(suite.Concurrently(writers, func(i int) error {
			for n := i; n < len(ids); n += writers {
				if err := handles[i].Append(t.Ctx, ids[n], event.Head{}, suite.BatchAfter(ids[n], event.Head{}, 1), false); err != nil {
					return err
				}
			}
			return nil
		})...)
	}()
	first.want(ids...)
	t.Must(<-written)
	second.want(ids...)
	first.stop()
	t.AppendLines(handles[1], event.Head{}, suite.BatchAfter("last", event.Head{}, 1))
	second.want("last")
}

func testChangesAndListing(t *env) {
	s, w := t.Store(), t.Open()
	written := make(chan map[string]event.Head, 1)
	go func() {
		heads := make(map[string]event.Head)
		for n := range testsize.Fewer(300) {
			id := fmt.Sprint("s", n%7)
			batch := suite.BatchAfter(id, heads[id], 1)
			if err := w.Append(t.Ctx, id, heads[id], batch, false); err != nil {
				t.Errorf("append: %v", err)
				break
			}
			heads[id] = suite.HeadOf(batch)
		}
		written <- heads
	}()
	l := t.listen(s)
	known := make(map[string]event.Head)
	t.learn(s, "", known)
	for want := map[string]event.Head(nil); want == nil || !maps.Equal(known, want); {
		select {
		case session := <-l.changed:
			t.learn(s, session, known)
		case want = <-written:
		case <-t.Ctx.Done():
			t.Fatalf("the listener knows %v, want %v", known, want)
		}
	}
}

// learn reads the head of a session, or of all sessions if session is "".
func (t *env) learn(s eventlog.Store, session string, heads map[string]event.Head) {
	t.Helper()
	if session == "" {
		for info, err := range s.Sessions(t.Ctx) {
			t.Must(err)
			heads[info.ID] = info.Last.Head()
		}
		return
	}
	for e, err := range s.Read(t.Ctx, session, eventlog.Span{Backward: true, Limit: 1}) {
		if errors.Is(err, eventlog.ErrNotFound) {
			return // its first append has not ended
		}
		t.Must(err)
		heads[session] = e.Head()
	}
}

func testSlowListener(t *env) {
	s := t.Store()
	l := t.listen(s)
	for n := range 50 {
		id := fmt.Sprint(n % 10)
		t.Append(t.Main(), id, eventlog.Any(), suite.Note(n))
	}
	l.want("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
}

func testChangesClosed(t *env) {
	s := t.Open()
	l := t.listen(s)
	t.Must(s.Close())
	l.wantEnd(eventlog.ErrClosed)
	_, err := suite.Collect(suite.Ability[eventlog.Notifier](t, s).Changes(t.Ctx))
	t.WantErr(eventlog.ErrClosed, err)
}
