package projection_test

import (
	"context"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
)

// texts folds the texts of the messages on the path, usage counts all messages
// there ever were.
var (
	texts = projection.Projection[[]string]{Name: "test:texts", Version: 1, Apply: func(s *[]string, e *event.Event) error {
		m, ok, err := event.Decode[event.Message](e)
		if ok && err == nil {
			*s = append(*s, m.Text())
		}
		return err
	}}
	count = projection.Projection[int]{Name: "test:count", Version: 1, Scope: event.SessionScope, Apply: func(n *int, e *event.Event) error {
		if e.Type.Name() == event.MessageAdded {
			*n++
		}
		return nil
	}}
)

func TestASnapshotAndItsTailAreTheState(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		say := func(text string) {
			t.Helper()
			e := event.UserMessage(text)
			if _, err := log.Append(ctx, "s", eventlog.Any(), e); err != nil {
				t.Fatal(err)
			}
		}
		set := projection.Of("test:both", texts, count)
		check := func(wantTexts []string, wantCount int, events int64) {
			t.Helper()
			l, err := projection.LoadSet(ctx, log, "s", set)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := projection.State(l, texts)
			n, _ := projection.State(l, count)
			if !slices.Equal(*got, wantTexts) || *n != wantCount || l.Explain.Events != events {
				t.Fatalf("%v, %d after reading %d events; want %v, %d, %d", *got, *n, l.Explain.Events, wantTexts, wantCount, events)
			}
		}
		say("a")
		say("b")
		check([]string{"a", "b"}, 2, 2)
		live, err := projection.Resume(ctx, log, "s", set)
		if err != nil {
			t.Fatal(err)
		}
		if _, taken, err := live.Snapshot(ctx, projection.Request{Trigger: projection.Manual, Body: true}); !taken || err != nil {
			t.Fatal(taken, err)
		}
		check([]string{"a", "b"}, 2, 1)
		say("c") // 4
		check([]string{"a", "b", "c"}, 3, 2)
		move := event.New(event.HeadMove{To: 1})
		if _, err := log.Append(ctx, "s", eventlog.Any(), move); err != nil { // 5
			t.Fatal(err)
		}
		say("d")                                 // 6
		check([]string{"a", "d"}, 4, 5)          // 6, 5, 4, 3 for the session, then 1
		if err := live.Follow(ctx); err != nil { // goes along with the move
			t.Fatal(err)
		}
		got, _ := projection.State(live, texts)
		if !slices.Equal(*got, []string{"a", "d"}) {
			t.Fatalf("live: %v", *got)
		}
	})
}
