package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/erase"
)

// digestOf is the digest of a body that no stream has.
func digestOf(n int) event.Digest { return event.DigestOf(fmt.Append(nil, "body ", n)) }

// listing is a line that lists the blobs with the numbers.
func listing(numbers ...int) suite.Line {
	var digests []string
	for _, n := range numbers {
		digests = append(digests, string(digestOf(n)))
	}
	slices.Sort(digests)
	return suite.Line{Members: `"blobs":["` + strings.Join(digests, `","`) + `"]`, Data: "1"}
}

// appendLocked appends events whose blobs are not stored: under a lock the store does not look.
func appendLocked(t testing.TB, store *jetstream.Store, events []event.Event) {
	t.Helper()
	locked, unlock, err := store.Lock(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	head := event.Head{}
	for e, err := range store.Read(locked, events[0].SessionID, eventlog.Span{Backward: true, Limit: 1}) {
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			t.Fatal(err)
		}
		head = e.Head()
	}
	if err := store.Append(locked, events[0].SessionID, head, events, false); err != nil {
		t.Fatal(err)
	}
}

// wantUsers checks the users of the blobs from 0 to n: words NUMBER:SESSION:SEQ, ordered.
func wantUsers(t testing.TB, store eventlog.Store, n int, want ...string) {
	t.Helper()
	var digests []event.Digest
	for i := range n {
		digests = append(digests, digestOf(i))
	}
	got := []string{}
	for u, err := range store.(eventlog.BlobIndex).BlobUsers(t.Context(), digests) {
		if err != nil {
			t.Error(err)
			return
		}
		got = append(got, fmt.Sprintf("%d:%s:%d", slices.Index(digests, u.Digest), u.Session, u.Seq))
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("users of the blobs: got %v, want %v", got, want)
	}
}

// wantRelated checks the sessions that are related to one.
func wantRelated(t testing.TB, store eventlog.Store, session string, want ...string) {
	t.Helper()
	var got []string
	for info, err := range store.(eventlog.Relater).Related(t.Context(), session) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("sessions related to %q: got %v, want %v", session, got, want)
	}
}

// wantErased checks that the files of the servers have no digest of the blobs.
func wantErased(t testing.TB, servers *natstest.Cluster, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		if where := holds(servers, "convlog", digestOf(n).Hex()); where != "" {
			t.Errorf("the digest of body %d is in %s", n, where)
		}
	}
}

// sweep finishes interrupted erasures.
func sweep(t testing.TB, store *jetstream.Store) {
	t.Helper()
	locked, unlock, err := store.Lock(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := suite.Collect(store.Sweep(locked, true)); err != nil {
		t.Error(err)
	}
}

// A process dies after it has replaced the lines or removed the session, and before it erases
// anything. The erased events are no users of blobs from then on. The next holder of the lock
// erases the digests.
func TestMarksOfAnInterruptedErasure(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	store := openLog(t, jetstream.Options{Connect: servers.Connect}).Store().(*jetstream.Store)
	one := suite.ChainAfter("s", event.Head{}, listing(0), listing(0, 1), listing(2))
	other := suite.ChainAfter("other", event.Head{}, listing(1), listing(3))
	appendLocked(t, store, one)
	appendLocked(t, store, other)
	wantUsers(t, store, 4, "0:s:1", "0:s:2", "1:s:2", "2:s:3", "1:other:1", "3:other:2")
	add := suite.ChainAfter("s", suite.HeadOf(one), listing(3))
	if err := store.Interrupted(t.Context(), "s", suite.HeadOf(one), []event.Event{suite.RedactedLine(one[0]), suite.RedactedLine(one[2])}, add); err != nil {
		t.Fatal(err)
	}
	now := []string{"0:s:2", "1:s:2", "3:s:4", "1:other:1", "3:other:2"}
	wantUsers(t, store, 4, now...)
	if holds(servers, "convlog", digestOf(2).Hex()) == "" {
		t.Error("the interrupted redaction has erased the digest")
	}
	sweep(t, store)
	wantUsers(t, store, 4, now...)
	wantErased(t, servers, 2)

	if err := store.InterruptedRemoval(t.Context(), "other", suite.HeadOf(other)); err != nil {
		t.Fatal(err)
	}
	now = now[:3]
	wantUsers(t, store, 4, now...)
	appendLocked(t, store, suite.ChainAfter("other", event.Head{}, listing(1)))
	now = append(now, "1:other:1")
	wantUsers(t, store, 4, now...)
	sweep(t, store)
	wantUsers(t, store, 4, now...)
	head := add[0].Head()
	if err := store.RemoveSession(t.Context(), "s", head); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, store, 4, "1:other:1")
	wantErased(t, servers, 0, 2, 3)
}

// A process dies in a redaction, and the next redaction of the session begins without a sweep.
func TestRedactionAfterAnInterruptedOne(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	store := openLog(t, jetstream.Options{Connect: servers.Connect}).Store().(*jetstream.Store)
	events := suite.ChainAfter("s", event.Head{}, listing(0), listing(1), listing(0, 1))
	appendLocked(t, store, events)
	head := suite.HeadOf(events)
	first, second := []event.Event{suite.RedactedLine(events[0])}, []event.Event{suite.RedactedLine(events[2])}
	if err := store.Interrupted(t.Context(), "s", head, first, nil); err != nil {
		t.Fatal(err)
	}
	if err := store.Rewrite(t.Context(), "s", head, second, nil); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, store, 2, "1:s:2")
	wantErased(t, servers, 0)
	if unfinished, err := store.Erasing(t.Context()); err != nil || !unfinished.Done() {
		t.Errorf("the finished erasure: %+v, %v", unfinished, err)
	}
}

// A rewrite of the first event changes the relations of its session.
func TestMarksOfANewFirstEvent(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	store := openLog(t, jetstream.Options{Connect: servers.Connect}).Store().(*jetstream.Store)
	for _, session := range []string{"a", "b"} {
		if err := store.Append(t.Context(), session, event.Head{}, suite.BatchAfter(session, event.Head{}, 2), false); err != nil {
			t.Fatal(err)
		}
	}
	run := suite.ChainAfter("run", event.Head{}, suite.Line{Typ: string(event.SessionStarted), Data: `{"parent":{"session_id":"a"}}`}, suite.Line{Data: "2"})
	if err := store.Append(t.Context(), "run", event.Head{}, run, false); err != nil {
		t.Fatal(err)
	}
	wantRelated(t, store, "a", "a", "run")
	moved := suite.WithData(run[0], `{"parent":{"session_id":"b"}}`)
	if err := store.Rewrite(t.Context(), "run", suite.HeadOf(run), []event.Event{moved}, nil); err != nil {
		t.Fatal(err)
	}
	wantRelated(t, store, "a", "a")
	wantRelated(t, store, "b", "b", "run")
	wantRelated(t, store, "run", "run")
}

// An append that is refused may leave a mark of its first event. It relates nothing.
func TestMarkWithoutItsEvents(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	options := jetstream.Options{Connect: servers.Connect}
	stores := []eventlog.Store{openLog(t, options).Store(), openLog(t, options).Store()}
	for i := range 20 {
		session := fmt.Sprint("s", i)
		var done sync.WaitGroup
		for n, store := range stores {
			parent := fmt.Sprint("parent", n)
			events := suite.ChainAfter(session, event.Head{}, suite.Line{Typ: string(event.SessionStarted), Data: `{"parent":{"session_id":"` + parent + `"}}`})
			done.Go(func() {
				if err := store.Append(t.Context(), session, event.Head{}, events, false); err != nil && !errors.Is(err, eventlog.ErrConflict) {
					t.Error(err)
				}
			})
		}
		done.Wait()
	}
	total := 0
	for n, store := range stores {
		for info, err := range store.(eventlog.Relater).Related(t.Context(), fmt.Sprint("parent", n)) {
			first, _, _ := event.Decode[event.Session](&info.First)
			if err != nil || first.Parent.SessionID != fmt.Sprint("parent", n) {
				t.Errorf("session %q is related to parent%d, but is a run of %q: %v", info.ID, n, first.Parent.SessionID, err)
			}
			total++
		}
	}
	if total != 20 {
		t.Errorf("found %d runs, want 20", total)
	}
}

// An append may list more blobs than a batch of the server has messages.
func TestManyBlobs(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{Payload: 4 << 20})
	store := openLog(t, jetstream.Options{Connect: servers.Connect}).Store().(*jetstream.Store)
	blobs := testsize.Pick(1_100, 1_100, 5_000)
	var lines []suite.Line
	var want []string
	for i := range blobs / 5 {
		lines = append(lines, listing(5*i, 5*i+1, 5*i+2, 5*i+3, 5*i+4))
		for n := 5 * i; n < 5*i+5; n++ {
			want = append(want, fmt.Sprintf("%d:s:%d", n, i+1))
		}
	}
	events := suite.ChainAfter("s", event.Head{}, lines...)
	appendLocked(t, store, events)
	appendLocked(t, store, suite.ChainAfter("few", event.Head{}, listing(7)))
	want = append(want, "7:few:1")
	wantUsers(t, store, blobs, want...)
	if err := store.Rewrite(t.Context(), "s", suite.HeadOf(events), []event.Event{suite.RedactedLine(events[0])}, nil); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, store, blobs, want[5:]...)
	wantErased(t, servers, 0, 1, 2, 3, 4)
	copies := suite.Sequence(suite.ChainAfter("s", event.Head{}, lines[1:]...))
	version, err := store.Version(t.Context(), "s")
	if err == nil {
		_, err = store.Replace(t.Context(), "s", version, copies)
	}
	if err != nil {
		t.Fatal(err)
	}
	var moved []string
	for n := 5; n < blobs; n++ {
		moved = append(moved, fmt.Sprintf("%d:s:%d", n, n/5))
	}
	wantUsers(t, store, blobs, append(moved, "7:few:1")...)
}

// A session is removed and begun again all the time, by several processes. Its events are the
// users of its blobs, and its relatives are found.
func TestMarksOfSessionsThatBeginAgain(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	options := jetstream.Options{Connect: servers.Connect}
	var done sync.WaitGroup
	for n := range 3 {
		log := openLog(t, options)
		done.Go(func() {
			for i := range testsize.Pick(4, 6, 12) {
				session := fmt.Sprint("s", i%2)
				ref, err := log.PutBlob(t.Context(), strings.NewReader(fmt.Sprint("body ", n)))
				if err == nil {
					_, err = log.Append(t.Context(), session, eventlog.Any(), suite.NewEvent(event.SessionStarted, `{"parent":{"session_id":"p"}}`), suite.Image(ref))
				}
				if err == nil {
					err = erase.Remove(t.Context(), log, session)
				}
				if err == nil || errors.Is(err, eventlog.ErrNotFound) {
					_, err = log.Append(t.Context(), session, eventlog.Any(), suite.NewEvent(event.SessionStarted, `{"parent":{"session_id":"p"}}`), suite.Image(ref))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	store := openLog(t, options).Store()
	var want []string
	for _, session := range []string{"s0", "s1"} {
		for e, err := range store.Read(t.Context(), session, eventlog.Span{}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range e.Blobs() {
				for n := range 3 {
					if d == digestOf(n) {
						want = append(want, fmt.Sprintf("%d:%s:%d", n, session, e.Seq))
					}
				}
			}
		}
	}
	if len(want) == 0 {
		t.Error("no session lists a blob")
	}
	wantUsers(t, store, 3, want...)
	wantRelated(t, store, "p", "s0", "s1")
}

// The streams of earlier builds have no marks, or differ in other ways. They are refused, and
// nothing is written: gc would remove blobs in use.
func TestStreamsOfEarlierBuilds(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	options := jetstream.Options{Connect: servers.Connect}
	if err := add(t, options); err != nil {
		t.Fatal(err)
	}
	request(t, servers, "STREAM.UPDATE.convlog_control", map[string]any{"name": "convlog_control", "subjects": []string{"convlog.control.>"}, "storage": "file",
		"retention": "limits", "discard": "new", "allow_direct": true, "allow_atomic": true, "allow_msg_ttl": true, "num_replicas": 1,
		"metadata": map[string]string{"convlog.version": "2", "convlog.shards": "1"}})
	log := openLog(t, options)
	_, err := suite.Collect(log.Store().Sessions(t.Context()))
	wantError(t, "list", event.ErrVersion, err)
	_, err = log.PutBlob(t.Context(), strings.NewReader("body"))
	wantError(t, "put a blob", event.ErrVersion, err)
	_, err = log.Append(t.Context(), "other", eventlog.New(), suite.Note(1))
	wantError(t, "append", event.ErrVersion, err)
	_, err = erase.Collect(t.Context(), log, erase.CollectOptions{Grace: -1})
	wantError(t, "gc", event.ErrVersion, err)
}

// A mark that another program has written does not let a blob be removed.
func TestHostileMark(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	log := openLog(t, jetstream.Options{Connect: servers.Connect})
	if _, err := log.PutBlob(t.Context(), strings.NewReader("body 0")); err != nil {
		t.Fatal(err)
	}
	if err := add(t, jetstream.Options{Connect: servers.Connect}); err != nil {
		t.Fatal(err)
	}
	nc := connect(t, servers)
	for _, body := range []string{"garbage", digestOf(0).Hex(), digestOf(0).Hex() + " x\n"} {
		m := nats.NewMsg("convlog.0.blob." + digestOf(0).Hex() + ".cw")
		m.Data = []byte(body)
		if _, err := nc.RequestMsgWithContext(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		_, err := erase.Collect(context.WithoutCancel(t.Context()), log, erase.CollectOptions{Grace: -1})
		wantCause(t, "gc", eventlog.ErrCorrupt, err, "stream convlog_0 message")
		request(t, servers, "STREAM.PURGE.convlog_0", map[string]string{"filter": "convlog.0.blob.>"})
	}
}
