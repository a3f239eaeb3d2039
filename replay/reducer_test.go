package replay_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/replay"
)

// visit is a reducer that lists the seqs it saw.
func visit(seen *[]int64, e *event.Event) error {
	*seen = append(*seen, e.Seq)
	return nil
}

var errEnough = errors.New("enough")

func TestReplayFolds(t *testing.T) {
	onEach(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		family(t, log)
		seen, err := replay.Replay(log.Read(ctx, "f", eventlog.All()), []int64{0}, visit, func(s *[]int64, e *event.Event) error {
			if e.Seq == 5 {
				*s = append(*s, -5)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int64{0, 1, 2, 3, 4, 5, -5, 6, 7, 8}, seen); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// An error of a reducer ends the replay, and names the event.
func TestReplayStopsAtAReducersError(t *testing.T) {
	onEach(t, func(t *testing.T, log *eventlog.Log) {
		family(t, log)
		n, err := replay.Replay(log.Read(context.Background(), "p", eventlog.All()), 0, func(n *int, e *event.Event) error {
			if e.Seq == 3 {
				return errEnough
			}
			*n++
			return nil
		})
		if !errors.Is(err, errEnough) || err.Error() != `replay event 3 of session "p": enough` || n != 2 {
			t.Errorf("after %d events: %v", n, err)
		}
		_, err = replay.Replay(log.Read(context.Background(), "missing", eventlog.All()), 0)
		if !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("a missing session: %v", err)
		}
	})
}

func TestReplayerSelects(t *testing.T) {
	onEach(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		family(t, log)
		fifth, err := log.Event(ctx, "g", 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			r    eventlog.Range
			with replay.Replayer[[]int64]
			want []int64
		}{
			{"until a seq", eventlog.All(), replay.Replayer[[]int64]{UntilSeq: 3}, []int64{1, 2, 3}},
			{"until an event", eventlog.All(), replay.Replayer[[]int64]{UntilEvent: fifth.ID}, []int64{1, 2, 3, 4, 5}},
			{"until whichever comes first", eventlog.All(), replay.Replayer[[]int64]{UntilSeq: 7, UntilEvent: fifth.ID}, []int64{1, 2, 3, 4, 5}},
			{"backward until a seq", eventlog.All().Backward(), replay.Replayer[[]int64]{UntilSeq: 8, Options: replay.Options{Backward: true}}, []int64{10, 9, 8}},
			{"the path", eventlog.All(), replay.Replayer[[]int64]{ActiveOnly: true}, []int64{1, 2, 9, 10}},
			{"the path before the move", eventlog.All(), replay.Replayer[[]int64]{ActiveOnly: true, UntilSeq: 3}, []int64{1, 2, 3}},
			{"the path backward until a seq", eventlog.All().Backward(),
				replay.Replayer[[]int64]{ActiveOnly: true, UntilSeq: 2, Options: replay.Options{Backward: true}}, []int64{10, 9, 2}},
		} {
			c.with.Reducers = []replay.Reducer[[]int64]{visit}
			seen, err := c.with.Replay(log.Read(ctx, "g", c.r), nil)
			if err != nil || !slices.Equal(seen, c.want) {
				t.Errorf("%s: got %v and %v, want %v", c.name, seen, err, c.want)
			}
		}
	})
}

func TestReplayerRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		family(t, log)
		for _, c := range []struct {
			name   string
			events func() (replay.Replayer[int], []event.Event)
			want   error
		}{
			{"until a seq past the end", func() (replay.Replayer[int], []event.Event) {
				return replay.Replayer[int]{UntilSeq: 11}, all(t, log.Read(ctx, "g", eventlog.All()))
			}, eventlog.ErrEventNotFound},
			{"until an event of elsewhere", func() (replay.Replayer[int], []event.Event) {
				return replay.Replayer[int]{UntilEvent: ulid.ULID{1}}, all(t, log.Read(ctx, "g", eventlog.All()))
			}, eventlog.ErrEventNotFound},
			{"until a seq that is not on the path", func() (replay.Replayer[int], []event.Event) {
				return replay.Replayer[int]{UntilSeq: 5, Options: replay.Options{Path: true}}, all(t, log.Read(ctx, "g", eventlog.All().OnPath()))
			}, eventlog.ErrEventNotFound},
			{"the path of a part", func() (replay.Replayer[int], []event.Event) {
				return replay.Replayer[int]{ActiveOnly: true}, all(t, log.Read(ctx, "g", eventlog.All().Own()))
			}, rule("gap")},
		} {
			with, events := c.events()
			if _, err := with.Replay(replay.Of(events...), 0); !fails(err, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			}
		}
		_, err := failure(replay.ActivePath(log.Read(ctx, "g", eventlog.From(7))))
		if !fails(err, rule("gap")) {
			t.Errorf("the active path of a part: %v", err)
		}
	})
}

// Upcasters apply to the events of any source, before the check. They do not change
// the events of the source.
func TestReplayerUpcasts(t *testing.T) {
	rename := func(data jsontext.Value) (jsontext.Value, error) {
		return jsontext.Value(`{"v2":` + string(data) + `}`), nil
	}
	with := replay.Replayer[string]{
		Options: replay.Options{Upcasters: []event.Upcaster{
			{From: "message_added/9", To: "note/2", Cast: rename}, {From: "note/2", To: "note/3", Cast: rename},
			{From: "bad", To: "worse", Cast: func(jsontext.Value) (jsontext.Value, error) { return nil, errEnough }},
		}},
		Reducers: []replay.Reducer[string]{func(s *string, e *event.Event) error {
			*s += string(e.Type) + string(e.Data)
			return nil
		}},
	}
	events := []event.Event{{Seq: 1, SessionID: "a", Type: "message_added/9", Data: jsontext.Value(`1`)}}
	got, err := with.Replay(replay.Of(events...), "")
	if want := `note/3{"v2":{"v2":1}}`; err != nil || got != want {
		t.Errorf("got %s and %v, want %s", got, err, want)
	}
	if events[0].Type != "message_added/9" || string(events[0].Data) != "1" {
		t.Errorf("the event itself became %s %s", events[0].Type, events[0].Data)
	}
	events[0].Type = "bad"
	if _, err := with.Replay(replay.Of(events...), ""); !errors.Is(err, errEnough) {
		t.Errorf("a failing upcaster: %v", err)
	}
}

// A replay writes nothing, and no watcher sees it.
func TestReplayDoesNotWrite(t *testing.T) {
	onEach(t, func(t *testing.T, log *eventlog.Log) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		family(t, log)
		before, err := log.Head(ctx, "g")
		if err != nil {
			t.Fatal(err)
		}
		live := make(chan int64, 100)
		go func() {
			defer close(live)
			for e, err := range log.Watch(ctx, "g", before.Seq+1) {
				if err != nil || e.Type == "test:end" {
					return
				}
				live <- e.Seq
			}
		}()
		if _, err := replay.Replay(log.Read(ctx, "g", eventlog.All()), []int64(nil), visit); err != nil {
			t.Fatal(err)
		}
		if after, err := log.Head(ctx, "g"); err != nil || after != before {
			t.Errorf("head %v became %v, %v", before, after, err)
		}
		end := event.Event{ID: event.NewID(), Type: "test:end", Data: jsontext.Value(`{}`)}
		appended(t, log, "g", end)
		for seq := range live {
			t.Errorf("a watcher saw event %d", seq)
		}
	})
}
