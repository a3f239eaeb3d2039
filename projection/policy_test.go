package projection_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
)

// sayer appends messages to session "s".
func sayer(t *testing.T, log *eventlog.Log) func(texts ...string) {
	return func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if _, err := log.Append(context.Background(), "s", eventlog.Any(), event.UserMessage(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// newest folds the newest text only, so contents repeat.
var newest = projection.Projection[string]{Name: "test:newest", Version: 1, Apply: func(s *string, e *event.Event) error {
	m, ok, err := event.Decode[event.Message](e)
	if ok && err == nil {
		*s = m.Text()
	}
	return err
}}

func TestChangesAndGrowth(t *testing.T) {
	o := projection.Opportunity{Digest: "sha256:b", Previous: "sha256:a", Bytes: 200 << 10, BodyBytes: 90 << 10}
	same, first, grown := o, o, o
	same.Previous = o.Digest
	first.Previous = ""
	grown.BodyBytes = 100 << 10
	twice := func(o *projection.Opportunity) bool { return o.Grown(2) }
	for _, c := range []struct {
		name string
		is   func(*projection.Opportunity) bool
		o    projection.Opportunity
		want bool
	}{
		{"changed", (*projection.Opportunity).Changed, o, true},
		{"the same", (*projection.Opportunity).Changed, same, false},
		{"the first", (*projection.Opportunity).Changed, first, true},
		{"grown twice", twice, o, true},
		{"not grown twice", twice, grown, false},
		{"below the floor", twice, projection.Opportunity{Bytes: 128 << 10}, false},
		{"above the floor", twice, projection.Opportunity{Bytes: 128<<10 + 1}, true},
		{"a short branch", twice, projection.Opportunity{Bytes: 1 << 20, AnyBytes: 99 << 10, AnyBodyBytes: 100 << 10}, false},
		{"a long branch", twice, projection.Opportunity{Bytes: 1 << 20, AnyBytes: 100 << 10, AnyBodyBytes: 100 << 10}, true},
	} {
		if got := c.is(&c.o); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestRepeatedContentHasThreeSnapshots(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		say := sayer(t, log)
		say("A")
		live, err := projection.Resume(ctx, log, "s", projection.Of("", newest), projection.LiveOptions{Policy: (*projection.Opportunity).Changed})
		if err != nil {
			t.Fatal(err)
		}
		var taken []event.Snapshot
		for _, text := range []string{"A", "B", "B", "A"} {
			say(text)
			if err := live.Follow(ctx); err != nil {
				t.Fatal(err)
			}
			s, ok, err := live.Snapshot(ctx, projection.Request{Trigger: projection.TurnEnd})
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				taken = append(taken, s)
			}
		}
		if len(taken) != 3 || taken[0].StateDigest != taken[2].StateDigest || taken[0].StateDigest == taken[1].StateDigest {
			t.Fatalf("taken %+v, want A, B, A", taken)
		}
		for i, s := range taken[1:] {
			if s.ParentSnapshotID != taken[i].SnapshotID || s.Index != i+1 {
				t.Errorf("snapshot %d has index %d and parent %s", i+1, s.Index, s.ParentSnapshotID)
			}
		}
		found, err := projection.Find(ctx, log, "s", taken[0].SnapshotID)
		if err != nil || found.Snapshot.SnapshotID != taken[0].SnapshotID {
			t.Errorf("found %+v, %v", found.Snapshot, err)
		}
		// The newest snapshot with the content, except orphaned ones.
		latest, err := projection.Find(ctx, log, "s", string(taken[0].StateDigest))
		if err != nil || latest.Snapshot.SnapshotID != taken[2].SnapshotID {
			t.Errorf("found %+v, %v", latest.Snapshot, err)
		}
		if _, err := fork.Rewind(ctx, log, "s", fork.AtSnapshot(taken[1].SnapshotID)); err != nil {
			t.Fatal(err)
		}
		earlier, err := projection.Find(ctx, log, "s", string(taken[0].StateDigest))
		if err != nil || earlier.Snapshot.SnapshotID != taken[0].SnapshotID || earlier.Orphaned {
			t.Errorf("found %+v, %v, want the one on the path", earlier, err)
		}
		for orphaned, want := range map[bool]int{false: 2, true: 3} {
			n := 0
			for _, err := range projection.Snapshots(ctx, log, "s", orphaned) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != want {
				t.Errorf("%d snapshots with orphaned %v, want %d", n, orphaned, want)
			}
		}
		if _, err := projection.Find(ctx, log, "s", "no such id"); !errors.Is(err, projection.ErrSnapshotNotFound) {
			t.Errorf("found none: %v", err)
		}
	})
}

func TestAgeIsCountedFromTheSnapshotBefore(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		say := sayer(t, log)
		say("a")
		first, err := log.Event(ctx, "s", 1)
		if err != nil {
			t.Fatal(err)
		}
		now := first.Timestamp.Add(59 * time.Minute)
		live, err := projection.Resume(ctx, log, "s", projection.Of("", newest),
			projection.LiveOptions{Policy: func(o *projection.Opportunity) bool { return o.Events > 0 && o.Age >= time.Hour },
				Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(want bool) {
			t.Helper()
			if _, taken, err := live.Snapshot(ctx, projection.Request{Trigger: "age"}); err != nil || taken != want {
				t.Fatalf("taken %v, %v; want %v", taken, err, want)
			}
		}
		ask(false)
		now = first.Timestamp.Add(time.Hour)
		ask(true)
		now = now.Add(time.Hour)
		ask(false) // nothing came after it
	})
}

// With the default policy all bodies together are smaller than the log, although the
// state has all messages.
func TestBodiesAreSmallerThanTheLog(t *testing.T) { checkBodies(t, 300, false) }

// Every turn is a branch from just before the second body, so no branch has that body.
func TestBodiesOfBranchesAreSmallerThanTheLog(t *testing.T) { checkBodies(t, 150, true) }

// checkBodies appends turns with a snapshot after each. With branches, each turn after the
// second body begins with a rewind to an event before that body.
func checkBodies(t *testing.T, turns int, branches bool) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		say := sayer(t, log)
		say("begin")
		live, err := projection.Resume(ctx, log, "s", projection.Session())
		if err != nil {
			t.Fatal(err)
		}
		taken, to := 0, int64(0)
		for range turns {
			start := live.Head.Seq
			if to > 0 {
				if _, err := live.Append(ctx, event.New(event.HeadMove{To: to})); err != nil {
					t.Fatal(err)
				}
			}
			say(strings.Repeat("words ", 500), strings.Repeat("more ", 500))
			if err := live.Follow(ctx); err != nil {
				t.Fatal(err)
			}
			s, _, err := live.Snapshot(ctx, projection.Request{Trigger: projection.TurnEnd})
			if err != nil {
				t.Fatal(err)
			}
			if !s.IsMark() {
				taken++
			}
			if branches && taken == 2 && to == 0 {
				to = start
			}
		}
		var said, kept int64
		bodies := 0
		for e, err := range log.Read(ctx, "s", eventlog.All()) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type.Name() != event.ProjectionSnapshotted {
				said += int64(len(e.Line()))
				continue
			}
			s, _, err := event.Decode[event.Snapshot](&e)
			if err != nil {
				t.Fatal(err)
			}
			kept += int64(len(e.Line()))
			for _, d := range e.Blobs() {
				r, err := log.OpenBlob(ctx, d)
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(io.Discard, r)
				if err = errors.Join(err, r.Close()); err != nil {
					t.Fatal(err)
				}
				kept += n
			}
			if !s.IsMark() {
				bodies++
			}
		}
		if bodies < 3 || kept > said {
			t.Errorf("%d bodies, %d bytes of snapshots for %d bytes of events", bodies, kept, said)
		}
	})
}
