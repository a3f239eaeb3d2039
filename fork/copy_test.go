package fork_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/erase"
)

// all are the events of a lineage.
func all(t *bench, log *eventlog.Log, session string) (events []event.Event) {
	t.Helper()
	for e, err := range log.Read(t.ctx, session, eventlog.All()) {
		t.must(err)
		events = append(events, e)
	}
	return events
}

// same compares a copy with its source: all but ids, session and the metadata of
// copies.
func (t *bench) same(source, copied []event.Event, sourceID string) {
	t.Helper()
	if len(source) != len(copied) {
		t.Fatalf("%d events of %d", len(copied), len(source))
	}
	ids, seen := map[ulid.ULID]ulid.ULID{}, map[ulid.ULID]bool{}
	for i := range source {
		ids[source[i].ID], seen[source[i].ID] = copied[i].ID, true
	}
	for i := range source {
		a, b := &source[i], &copied[i]
		if seen[b.ID] || b.SessionID == a.SessionID {
			t.Errorf("event %d of the copy is %s of %q", b.Seq, b.ID, b.SessionID)
		}
		if a.Seq != b.Seq || a.Type != b.Type || !a.Timestamp.Equal(b.Timestamp) || a.Cost != b.Cost || a.More() != b.More() {
			t.Errorf("%v became %v: %v, %v, %d", a, b, b.Timestamp, b.Cost, b.More())
		}
		data := string(a.Data)
		for old, fresh := range ids {
			if a.Type != event.SessionForked {
				data = strings.ReplaceAll(data, old.String(), fresh.String())
			}
		}
		if data != string(b.Data) || string(a.Extras()) != string(b.Extras()) {
			t.Errorf("%v: %s became %s", a, a.Data, b.Data)
		}
		origin, ok := b.Origin()
		if want := (event.Origin{Session: a.SessionID, ID: a.ID, Seq: a.Seq}); !ok || origin != want {
			t.Errorf("origin of %v is %+v", b, origin)
		}
	}
}

// rich makes a fork with a rewind, references, costs, metadata, unknown members and
// types, blobs and large appends.
func (t *bench) rich() (session string) {
	t.Helper()
	start := started(0)
	spent := assistant("done")
	spent.Cost = event.Dollar / 4
	spent.Metadata = []byte(`{"n": 9007199254740993, "fork_origin": {"session_id": "older", "seq": 7}}`)
	t.must(spent.SetExtras([]byte(`{"unknown": [1, 2]}`)))
	t.add("p", user("one"), start)
	t.add("p", calls("x"))
	t.add("p", result("x"))
	t.add("p", spent, completed(start)) // 6
	body, err := t.log.PutBlob(t.ctx, strings.NewReader("a body"))
	t.must(err)
	t.fork("s", "p", fork.Head()) // 7
	t.add("s", event.New(event.Artifact{ArtifactID: "art", Body: body}))
	unknown := event.Event{ID: event.NewID(), Type: "other:thing", Data: []byte(`{"blob": "` + body.Blob + `"}`)}
	t.must(unknown.AddBlobs(body.Blob))
	t.add("s", unknown)
	second := started(1)
	t.add("s", user(strings.Repeat("long ", 100_000)), second)
	for _, payload := range []event.Payload{
		event.StepStart{TurnID: second.ID}, event.StepCompletion{TurnID: second.ID}, event.Abort{TurnID: second.ID},
		event.EffectIntent{Key: "k", TurnID: second.ID, Class: event.EffectPure},
		event.EffectCompletion{Key: "k", TurnID: second.ID},
		event.Child{State: event.ChildRequested, ChildID: "c", ParentEventID: second.ID},
		event.TurnHibernation{TurnID: second.ID, Cursor: event.Cursor{ID: "1", Kind: "wait"}},
		event.TurnResumption{TurnID: second.ID, CursorID: "1"},
	} {
		t.add("s", event.New(payload))
	}
	t.rewind("s", fork.AtSeq(6))
	t.add("s", user("again"))
	return "s"
}

func TestCopy(t *testing.T) {
	everywhere(t, func(t *bench) {
		session := t.rich()
		c, err := fork.Copy(t.ctx, t.log, session, fork.CopyOptions{ID: "copy"})
		t.must(err)
		source, copied := all(t, t.log, session), all(t, t.log, "copy")
		t.same(source, copied, session)
		if c.Head != copied[len(copied)-1].Head() || c.Parent != session || c.Seq != c.Head.Seq || c.ID != "copy" || c.Erased != nil {
			t.Errorf("the copy is %+v", c)
		}
		if diff := cmp.Diff(t.path(session), t.path("copy")); diff != "" {
			t.Errorf("its path:\n%s", diff)
		}
		for _, e := range copied {
			inherited, ok := e.MetadataValue("inherited")
			counts := e.Cost > 0 || e.Type == event.MessageAdded || e.Type == event.TurnCompleted
			if counts && string(inherited) != "true" || e.Type == event.HeadMoved && ok {
				t.Errorf("%v: inherited is %s", &e, inherited)
			}
		}
		if n, _ := copied[4].MetadataValue("n"); string(n) != "9007199254740993" {
			t.Errorf("a number became %s", n)
		}
		t.sound("copy")
		again, err := fork.Copy(t.ctx, t.log, "copy")
		t.must(err)
		t.same(copied, all(t, t.log, again.ID), "copy")
		t.must(erase.Remove(t.ctx, t.log, session))
		t.must(erase.Remove(t.ctx, t.log, "p"))
		t.sound("copy")
	})
}

func TestCopyIntoAnotherStore(t *testing.T) {
	for from, open := range stores {
		for to, openTo := range stores {
			t.Run(from+" to "+to, func(t *testing.T) {
				a, b := newBench(t, open), newBench(t, openTo)
				session := a.rich()
				_, err := fork.Copy(a.ctx, a.log, session, fork.CopyOptions{ID: "copy", To: b.log})
				a.must(err)
				a.same(all(a, a.log, session), all(b, b.log, "copy"), session)
				a.nothingIn(a.log, "copy")
				b.sound("copy")
				artifact, _, err := func() (event.Artifact, bool, error) {
					e := all(b, b.log, "copy")[7]
					return event.Decode[event.Artifact](&e)
				}()
				b.must(err)
				body, err := b.log.OpenArtifact(b.ctx, artifact)
				b.must(err)
				text, err := io.ReadAll(body)
				if err != nil || string(text) != "a body" {
					t.Errorf("the body is %q, %v", text, err)
				}
				b.must(body.Close())
			})
		}
	}
}

func TestCopyRefused(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 1)
		t.turns("b", 0, 1)
		for _, id := range []string{"a", "b"} {
			if _, err := fork.Copy(t.ctx, t.log, "a", fork.CopyOptions{ID: id}); !errors.Is(err, eventlog.ErrExists) {
				t.Errorf("copied onto %q: %v", id, err)
			}
			if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 6}, t.path(id)); diff != "" {
				t.Error(diff)
			}
		}
		_, err := fork.Copy(t.ctx, t.log, "a", fork.CopyOptions{ID: "\x00"})
		if !errors.Is(err, event.ErrInvalidSession) {
			t.Errorf("copied: %v", err)
		}
	})
}

// The first event of a fork that shares nothing is session_forked. Its copy does not
// need the parent either.
func TestCopyOfAForkOfNothing(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 1)
		t.fork("b", "a", fork.AtSeq(0))
		t.add("b", user("hello"))
		other := newBench(t, stores["jsonl"])
		_, err := fork.Copy(t.ctx, t.log, "b", fork.CopyOptions{ID: "c", To: other.log})
		t.must(err)
		_, err = fork.Copy(t.ctx, t.log, "b", fork.CopyOptions{ID: "c"})
		t.must(err)
		if forks := idsOf(t.node("a").Forks()); len(forks) != 1 {
			t.Errorf("the forks of a are %q", forks)
		}
		other.sound("c")
		if diff := cmp.Diff([]int64{1, 2}, other.path("c")); diff != "" {
			t.Error(diff)
		}
	})
}

// A redacted event becomes a lost event of the copy. References to it stay.
func TestCopyOfRedactedEvents(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.each("a", user("secret"), calls("x"), result("x"), assistant("fine"))
		_, err := erase.Redact(t.ctx, t.log, "a", []int64{1, 2}, erase.RedactOptions{Reason: "asked for"})
		t.must(err)
		c, err := fork.Copy(t.ctx, t.log, "a", fork.CopyOptions{ID: "b"})
		t.must(err)
		if diff := cmp.Diff([]int64{1, 2}, c.Erased); diff != "" {
			t.Error(diff)
		}
		events := all(t, t.log, "b")
		loss, _, err := event.Decode[event.Loss](&events[1])
		if err != nil || loss.Reason != "redacted" || !strings.Contains(string(loss.Extra), `"calls":["x"]`) {
			t.Errorf("event 2 is %s, %v", events[1].Data, err)
		}
		if events[2].Type != event.MessageAdded || events[4].Type != event.Redacted {
			t.Errorf("then come %v and %v", &events[2], &events[4])
		}
		t.sound("b")
	})
}

// failing fails the append of the n-th batch of a session.
type failing struct {
	*counting
	session string
	left    int
	cancel  context.CancelFunc
	keeps   bool // removing fails too
}

var errBroken = errors.New("broken")

func (f *failing) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	if session == f.session {
		if f.left--; f.left < 0 {
			f.cancel()
			return errBroken
		}
	}
	return f.counting.Append(ctx, session, expect, events, durable)
}

func (f *failing) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	eraser, _ := eventlog.As[eventlog.Eraser](f.counting)
	return eraser.Rewrite(ctx, session, expect, replace, add)
}

func (f *failing) SetErasing(ctx context.Context, digests []event.Digest) error {
	eraser, _ := eventlog.As[eventlog.Eraser](f.counting)
	return eraser.SetErasing(ctx, digests)
}

func (f *failing) Erasing(ctx context.Context) (eventlog.Erasing, error) {
	eraser, _ := eventlog.As[eventlog.Eraser](f.counting)
	return eraser.Erasing(ctx)
}

func (f *failing) RemoveSession(ctx context.Context, session string, expect event.Head) error {
	if f.keeps {
		return errBroken
	}
	remover, _ := eventlog.As[eventlog.Eraser](f.counting)
	return remover.RemoveSession(ctx, session, expect)
}

// A copy that fails or is canceled leaves no session, or one that is marked as
// partial.
func TestCopyThatFails(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		t.Run(fmt.Sprint("keeps ", keeps), func(t *testing.T) {
			everywhere(t, func(t *bench) {
				count := testsize.Pick[int64](1100, 1100, 2500) // two appends of a copy, or three
				for i := range count {
					t.add("a", user(fmt.Sprint(i)))
				}
				ctx, cancel := context.WithCancel(t.ctx)
				defer cancel()
				log := eventlog.Open(&failing{counting: t.store, session: "b", left: 1, cancel: cancel, keeps: keeps})
				_, err := fork.Copy(ctx, log, "a", fork.CopyOptions{ID: "b"})
				if !errors.Is(err, errBroken) {
					t.Errorf("copied: %v", err)
				}
				if !keeps {
					t.nothingIn(t.log, "b")
					return
				}
				forest, err := fork.Tree(t.ctx, t.log)
				t.must(err)
				if n := forest.Node("b"); !n.Partial || n.Last.Seq == 0 || n.Parent != "a" || n.Seq != count {
					t.Errorf("what is left is %+v", n)
				}
				t.must(erase.Remove(t.ctx, t.log, "b"))
				_, err = fork.Copy(t.ctx, t.log, "a", fork.CopyOptions{ID: "b"})
				t.must(err)
				if forest, err = fork.Tree(t.ctx, t.log); err != nil || forest.Node("b").Partial {
					t.Errorf("a whole copy is partial, %v", err)
				}
			})
		})
	}
}

// Events and appends of the maximum size can be copied: the origin does not count
// against the limit of metadata, and a large append is split.
func TestCopyOfWhatIsLarge(t *testing.T) {
	everywhere(t, func(t *bench) {
		session := strings.Repeat("\\", 200)
		large := user("hello")
		large.Metadata = []byte(`{"m":"` + strings.Repeat("x", 64<<10-8) + `"}`)
		t.add(session, large)
		var many []event.Event
		for range 4000 {
			many = append(many, user("y"))
		}
		t.add(session, many...)
		t.add(session, user("bye"))
		c, err := fork.Copy(t.ctx, t.log, session, fork.CopyOptions{ID: strings.Repeat(`"`, 200)})
		t.must(err)
		ends := 0
		for _, e := range all(t, t.log, c.ID) {
			origin, _ := e.Origin()
			if e.More() == 0 {
				ends++
			}
			if origin.Seq != e.Seq || origin.Session != session {
				t.Errorf("%v comes from %+v", &e, origin)
			}
		}
		if c.Head.Seq != 4002 || ends < 4 || ends > 10 {
			t.Errorf("copied to %d in %d appends", c.Head.Seq, ends)
		}
		t.sound(c.ID)
	})
}

// A copy reads its source once, without the events that others append meanwhile.
func TestCopyReadsOnce(t *testing.T) {
	everywhere(t, func(t *bench) {
		count := testsize.Pick[int64](1100, 1100, 3000)
		for i := range count {
			t.add("a", user(fmt.Sprint(i)))
		}
		var c fork.Session
		reads, events := t.store.count(func() {
			var err error
			c, err = fork.Copy(t.ctx, t.log, "a")
			t.must(err)
		})
		if c.Head.Seq != count || reads > 20 || events > count+100 {
			t.Errorf("copied to %v by %d reads of %d events", c.Head, reads, events)
		}
	})
}
