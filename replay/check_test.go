package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/replay"
)

// Check accepts the events of a log in either direction, whole or in part.
func TestCheckAcceptsALog(t *testing.T) {
	onEach(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		family(t, log)
		for _, c := range []struct {
			name string
			r    eventlog.Range
			opts replay.Options
			want int
		}{
			{"all", eventlog.All(), replay.Options{Session: "g", All: true, Whole: true}, 10},
			{"of any session", eventlog.All(), replay.Options{}, 10},
			{"backward", eventlog.All().Backward(), replay.Options{Session: "g", Whole: true, Backward: true}, 10},
			{"a part", eventlog.Between(3, 8), replay.Options{Session: "g", After: 2}, 6},
			{"a part backward", eventlog.Between(3, 8).Backward(), replay.Options{Session: "g", After: 2, Backward: true}, 6},
			{"what is the parent's", eventlog.Between(1, 3), replay.Options{Session: "g"}, 3},
			{"its own", eventlog.All().Own(), replay.Options{Session: "g"}, 4},
			{"the last", eventlog.Last(2), replay.Options{}, 2},
		} {
			t.Run(c.name, func(t *testing.T) {
				got := all(t, replay.Check(log.Read(ctx, "g", c.r), c.opts))
				if len(got) != c.want {
					t.Errorf("got %v, want %d events", places(got), c.want)
				}
			})
		}
		path := all(t, replay.Check(log.Read(ctx, "g", eventlog.All().OnPath()), replay.Options{Session: "g", Path: true, Whole: true}))
		if diff := cmp.Diff([]string{"p 1", "p 2", "g 9", "g 10"}, places(path)); diff != "" {
			t.Errorf("path (-want +got):\n%s", diff)
		}
		all(t, replay.Check(log.Read(ctx, "g", eventlog.All().OnPath())))
		all(t, replay.Check(replay.Of(path[2:]...), replay.Options{After: 2, Session: "g"}))
		slices.Reverse(path)
		all(t, replay.Check(replay.Of(path...), replay.Options{Backward: true, Whole: true}))
		all(t, replay.Check(replay.Of(path...), replay.Options{Session: "g", Path: true, Whole: true, Backward: true}))
	})
}

// Check stops when its reader does.
func TestCheckStops(t *testing.T) {
	onEach(t, func(t *testing.T, log *eventlog.Log) {
		family(t, log)
		read := 0
		counted := func(yield func(event.Event, error) bool) {
			for e, err := range log.Read(context.Background(), "g", eventlog.All()) {
				read++
				if !yield(e, err) {
					return
				}
			}
		}
		for e := range replay.Check(counted) {
			if e.Seq == 3 {
				break
			}
		}
		if read != 3 {
			t.Errorf("read %d events, want 3", read)
		}
	})
}

var errDisk = errors.New("disk is gone")

// broken is a sequence that Check refuses.
type broken struct {
	name   string
	opts   replay.Options
	events func(f *families) []event.Event
	want   error
	seq    int64 // of the event that is refused
	before int   // how many events pass
}

// families are the events of a family, as read of each session.
type families struct {
	p, f, g, path, other []event.Event
	// twice moves the head to 1 at 4, and to 5 at 7.
	twice []event.Event
}

var brokens = []broken{
	{"another session between", replay.Options{}, func(f *families) []event.Event {
		return slices.Concat(f.p[:2], f.other[2:3], f.p[3:])
	}, rule("mixed_sessions"), 3, 2},
	{"another session behind", replay.Options{}, func(f *families) []event.Event {
		return slices.Concat(f.other[:4], f.p[4:])
	}, rule("mixed_sessions"), 5, 4},
	{"back in the parent", replay.Options{}, func(f *families) []event.Event {
		return slices.Concat(f.f[:5], f.p[5:])
	}, rule("mixed_sessions"), 6, 5},
	{"a fork of the session asked for", replay.Options{Session: "p"}, func(f *families) []event.Event {
		return f.f
	}, rule("mixed_sessions"), 5, 4},
	{"a fork of the session asked for, backward", replay.Options{Session: "p", Backward: true}, func(f *families) []event.Event {
		return reverse(f.f)
	}, rule("mixed_sessions"), 4, 4},
	{"another session, backward", replay.Options{Backward: true}, func(f *families) []event.Event {
		return reverse(slices.Concat(f.other[:4], f.p[4:]))
	}, rule("mixed_sessions"), 4, 2},
	{"a fork of others", replay.Options{}, func(f *families) []event.Event {
		return slices.Concat(f.other[:4], f.f[4:])
	}, rule("fork_point"), 5, 4},
	{"a fork of others, backward", replay.Options{Backward: true}, func(f *families) []event.Event {
		return reverse(slices.Concat(f.other[:4], f.f[4:]))
	}, rule("fork_point"), 4, 4},
	{"one is missing", replay.Options{}, func(f *families) []event.Event {
		return slices.Delete(f.g, 2, 3)
	}, rule("gap"), 4, 2},
	{"one is missing, backward", replay.Options{Backward: true}, func(f *families) []event.Event {
		return reverse(slices.Delete(f.g, 2, 3))
	}, rule("gap"), 2, 7},
	{"one is missing on the path", replay.Options{Path: true}, func(f *families) []event.Event {
		return slices.Delete(f.path, 1, 2)
	}, rule("gap"), 9, 1},
	{"a path where all is wanted", replay.Options{All: true}, func(f *families) []event.Event {
		return f.path
	}, rule("gap"), 9, 2},
	{"all where a path is wanted", replay.Options{Path: true}, func(f *families) []event.Event {
		return f.g
	}, rule("order"), 9, 8},
	{"a path and then all", replay.Options{}, func(f *families) []event.Event {
		return slices.Concat(f.twice[:1], f.twice[3:])
	}, rule("order"), 7, 4},
	{"all and then a path", replay.Options{}, func(f *families) []event.Event {
		return slices.Delete(f.twice, 5, 6)
	}, rule("gap"), 7, 5},
	{"a path of later than after", replay.Options{After: 2}, func(f *families) []event.Event { return f.twice[3:4] }, rule("gap"), 4, 0},
	{"the beginning is missing", replay.Options{Whole: true}, func(f *families) []event.Event {
		return f.p[1:]
	}, rule("gap"), 2, 0},
	{"the beginning is missing, backward", replay.Options{Whole: true, Backward: true}, func(f *families) []event.Event {
		return reverse(f.p[1:])
	}, rule("gap"), 2, 5},
	{"later than after", replay.Options{After: 2}, func(f *families) []event.Event { return f.p[3:] }, rule("gap"), 4, 0},
	{"earlier than after", replay.Options{After: 2}, func(f *families) []event.Event { return f.p[1:] }, rule("order"), 2, 0},
	{"one comes twice", replay.Options{}, func(f *families) []event.Event {
		return slices.Concat(f.p[:2], f.p[1:])
	}, rule("order"), 2, 2},
	{"backward where forward is wanted", replay.Options{}, func(f *families) []event.Event {
		return reverse(f.p)
	}, rule("order"), 5, 1},
	{"forward where backward is wanted", replay.Options{Backward: true}, func(f *families) []event.Event {
		return f.p
	}, rule("order"), 2, 1},
	{"one that was never appended", replay.Options{}, func(f *families) []event.Event {
		return []event.Event{{Type: event.MessageAdded, SessionID: "p"}}
	}, rule("order"), 0, 0},
	{"a move to itself", replay.Options{}, func(f *families) []event.Event { return moves(f.g, 9) }, rule("cycle"), 9, 8},
	{"a move forwards", replay.Options{}, func(f *families) []event.Event { return moves(f.g, 10) }, rule("cycle"), 9, 8},
	{"a move forwards, backward", replay.Options{Backward: true}, func(f *families) []event.Event {
		return reverse(moves(f.g, 10))
	}, rule("cycle"), 9, 1},
	{"a move to before everything", replay.Options{}, func(f *families) []event.Event { return moves(f.g, -1) }, rule("cycle"), 9, 8},
	{"a fork of itself", replay.Options{}, func(f *families) []event.Event {
		f.f[4].Data = jsontext.Value(`{"parent":"f","seq":4,"hash":"` + f.f[3].Hash().String() + `"}`)
		return f.f
	}, rule("cycle"), 5, 4},
	{"a move without a target", replay.Options{}, func(f *families) []event.Event {
		f.g[8].Data = jsontext.Value(`{"to":"x"}`)
		return f.g
	}, event.ErrInvalidPayload, 0, 8},
	{"a newer payload", replay.Options{}, func(f *families) []event.Event {
		f.p[3].Type = "message_added/2"
		return f.p
	}, event.ErrVersion, 0, 3},
}

func TestCheckRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, log *eventlog.Log) {
		family(t, log)
		for range 6 {
			appended(t, log, "other", said(t, "other"))
		}
		appended(t, log, "twice", said(t, "1"), said(t, "2"), said(t, "3"), moved(t, 1), said(t, "5"), said(t, "6"), moved(t, 5), said(t, "8"))
		for _, c := range brokens {
			t.Run(c.name, func(t *testing.T) {
				before, err := failure(replay.Check(replay.Of(c.events(read(t, log))...), c.opts))
				if !fails(err, c.want) {
					t.Fatalf("got error %v after %v, want %v", err, places(before), c.want)
				}
				if len(before) != c.before {
					t.Errorf("%v passed, want %d events", places(before), c.before)
				}
				if where := new(replay.OrderError); errors.As(err, &where) && where.Seq != c.seq {
					t.Errorf("the error is about %d, want %d: %v", where.Seq, c.seq, err)
				}
			})
		}
	})
}

// The error of a newer payload names both versions.
func TestCheckNamesBothVersions(t *testing.T) {
	e := said(t, "hello")
	e.Type, e.Seq, e.SessionID = "message_added/7", 1, "a"
	_, err := failure(replay.Check(replay.Of(e)))
	want := event.VersionError{What: "message_added", Got: 7, Max: 1}
	if got := new(event.VersionError); !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
	e.Type = "order_placed/7"
	if _, err := failure(replay.Check(replay.Of(e))); err != nil {
		t.Errorf("a type that is not of the vocabulary: %v", err)
	}
}

// An error of the sequence itself is passed on and ends it.
func TestCheckPassesErrorsOn(t *testing.T) {
	e := said(t, "hello")
	e.Seq, e.SessionID = 1, "a"
	events := func(yield func(event.Event, error) bool) {
		if yield(e, nil) && yield(event.Event{}, errDisk) {
			yield(e, nil)
		}
	}
	before, errs := 0, 0
	for _, err := range replay.Check(events) {
		if errs > 0 {
			t.Fatal("the sequence continues after an error")
		}
		if errors.Is(err, errDisk) {
			errs++
		} else {
			before++
		}
	}
	if before != 1 || errs != 1 {
		t.Errorf("%d events and %d errors, want one of each", before, errs)
	}
}

// read reads the family again, so that a case may change its events.
func read(t *testing.T, log *eventlog.Log) *families {
	t.Helper()
	ctx := context.Background()
	return &families{
		p: all(t, log.Read(ctx, "p", eventlog.All())), f: all(t, log.Read(ctx, "f", eventlog.All())),
		g: all(t, log.Read(ctx, "g", eventlog.All())), path: all(t, log.Read(ctx, "g", eventlog.All().OnPath())),
		other: all(t, log.Read(ctx, "other", eventlog.All())), twice: all(t, log.Read(ctx, "twice", eventlog.All())),
	}
}

func reverse(events []event.Event) []event.Event {
	events = slices.Clone(events)
	slices.Reverse(events)
	return events
}

// moves changes the target of the head_moved event 9.
func moves(events []event.Event, to int64) []event.Event {
	events[8].Data = jsontext.Value(fmt.Sprintf(`{"to":%d}`, to))
	return events
}
