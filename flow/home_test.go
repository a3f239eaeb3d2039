package flow_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

// The ways to copy a store.
var copies = map[string]func(ctx context.Context, to, from *eventlog.Log) error{
	"convert": func(ctx context.Context, to, from *eventlog.Log) error {
		return failure(transfer.Convert(ctx, to, from))
	},
	"backup": func(ctx context.Context, to, from *eventlog.Log) error {
		return failure(transfer.Backup(ctx, to, from))
	},
	"export": func(ctx context.Context, to, from *eventlog.Log) error {
		var b bytes.Buffer
		var ids []string
		for info, err := range from.Sessions(ctx) {
			if err != nil {
				return err
			}
			ids = append(ids, info.ID)
		}
		if err := transfer.Export(ctx, from, &b, ids...); err != nil {
			return err
		}
		_, err := transfer.Import(ctx, to, &b)
		return err
	},
}

func failure(results iter.Seq2[transfer.Result, error]) (failed error) {
	for _, err := range results {
		failed = errors.Join(failed, err)
	}
	return failed
}

// homes is an agent in two stores. ran counts its effects by session and name.
type homes struct {
	mu  sync.Mutex
	ran map[string]int
}

func (h *homes) agent(log *eventlog.Log) *flow.Agent[notes] {
	do := func(ctx context.Context, tn *flow.Turn[notes], name string, review *flow.Question) error {
		_, err := flow.Do(ctx, tn, flow.Effect{Name: name, Review: review}, func(context.Context) (int, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ran[tn.Session()+" "+name]++
			return 1, nil
		})
		return err
	}
	child := &flow.Agent[notes]{Name: "child", Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "below", Review: &flow.Question{Prompt: "below?"}}, func(context.Context) (int, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ran["child below"]++
			return 1, nil
		})
		return err
	}}
	return &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		if err := do(ctx, tn, "one", nil); err != nil {
			return err
		}
		switch tn.Session() {
		case "reviewed":
			return do(ctx, tn, "two", &flow.Question{Prompt: "two?"})
		case "family":
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "two"}, func(ctx context.Context) (string, error) {
				out, err := flow.RunChild(ctx, child, flow.Text("go"), flow.ChildOptions{})
				return out.Session, err
			})
			return err
		}
		return do(ctx, tn, "two", nil)
	}}
}

// fill makes the sessions: one that waits for a review, one whose child does, one that was
// killed after its first effect, one that was killed before its turn began, one whose input
// waits, one that was forked in its turn, and one whose turn ended.
func (h *homes) fill(t *testing.T, data *memory.Store) {
	t.Helper()
	ctx := t.Context()
	for session, appends := range map[string]int{"reviewed": 0, "family": 0, "killed": 5, "killed before": 2, "ended": 0} {
		how := crashBefore
		if appends == 0 {
			how = noCrash
		}
		log := eventlog.Open(&crashStore{Store: data.Handle(), n: appends, how: how})
		_, err := h.agent(log).Run(ctx, session, flow.Text("x"))
		var pause *flow.Hibernated
		if waits := session == "reviewed" || session == "family"; waits != errors.As(err, &pause) || session == "ended" && err != nil || appends > 0 && err == nil {
			t.Fatalf("%s: %v", session, err)
		}
		log.Close()
	}
	log := eventlog.Open(data.Handle())
	defer log.Close()
	if err := post(ctx, log, "posted", flow.Text("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := fork.At(ctx, log, "killed", fork.Head(), fork.Options{ID: "forked", Force: true}); err != nil {
		t.Fatal(err)
	}
}

// decide approves the open reviews of a store.
func decide(ctx context.Context, log *eventlog.Log) error {
	for info, err := range flow.Runs(ctx, log) {
		if err != nil {
			return err
		}
		for _, r := range info.Approvals {
			if r.SessionID != "" {
				continue // the child is in the list too
			}
			if _, err := flow.Decide(ctx, log, info.Session, answerTo(r, event.Approved)); err != nil {
				return err
			}
		}
	}
	return nil
}

// serve serves the sessions of a store for a minute.
func (h *homes) serve(ctx context.Context, log *eventlog.Log) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	return h.agent(log).Serve(ctx)
}

// homeRuns are the effects of the sessions, each once. The fork has the first effect of
// its parent.
var homeRuns = map[string]int{"reviewed one": 1, "reviewed two": 1, "family one": 1, "child below": 1, "killed one": 1, "killed two": 1,
	"killed before one": 1, "killed before two": 1, "posted one": 1, "posted two": 1, "ended one": 1, "ended two": 1, "forked two": 1}

// A store is copied while turns are open and inputs wait. Both sides are served: each
// effect runs once, in the home of its turn. The copy refuses answers and to continue, and says
// where the home is.
func TestATurnHasOneHome(t *testing.T) {
	for name, copyStore := range copies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, data := &homes{ran: map[string]int{}}, memory.New()
				h.fill(t, data)
				home, away := eventlog.Open(data), eventlog.Open(memory.New())
				defer home.Close()
				defer away.Close()
				ctx := t.Context()
				if err := errors.Join(copyStore(ctx, away, home), decide(ctx, home)); err != nil {
					t.Fatal(err)
				}
				if err := decide(ctx, away); !errors.As(err, new(*flow.HomeError)) {
					t.Fatalf("an answer in a copy: %v", err)
				}
				h.refused(t, home, away)
				served := make(chan error)
				go func() { served <- h.serve(ctx, away) }()
				if err := errors.Join(h.serve(ctx, home), <-served); err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(h.ran, homeRuns) {
					t.Fatalf("ran %v", h.ran)
				}
				h.refused(t, home, away)
				if out, err := h.agent(away).Run(ctx, "ended", flow.Text("y")); err != nil || out.Status != flow.StatusFinished {
					t.Fatalf("a new input in the copy of a finished session: %v", err)
				}
			})
		})
	}
}

// refused checks that a copy continues no session.
func (h *homes) refused(t *testing.T, home, away *eventlog.Log) {
	t.Helper()
	ctx := t.Context()
	homeID, err := home.StoreID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	awayID, err := away.StoreID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"reviewed", "family", "killed", "killed before", "posted", "forked"} {
		before, err := away.Head(ctx, session)
		if err != nil {
			t.Fatal(err)
		}
		var refused *flow.HomeError
		_, err = h.agent(away).Resume(ctx, flow.Ref{Session: session})
		if !errors.As(err, &refused) || refused.Home != homeID || refused.Store != awayID || refused.Session != session {
			t.Fatalf("Resume of %s: %v", session, err)
		}
		if _, err = h.agent(away).Send(ctx, session, flow.Text("y")); !errors.As(err, &refused) {
			t.Fatalf("Send to %s: %v", session, err)
		}
		for snapshot, err := range projection.Snapshots(ctx, away, session, false) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err = h.agent(away).Resume(ctx, flow.Ref{Session: session, Snapshot: snapshot.Snapshot.SnapshotID}); !errors.As(err, &refused) {
				t.Fatalf("Resume of %s at a snapshot: %v", session, err)
			}
		}
		if after, _ := away.Head(ctx, session); after != before {
			t.Fatalf("%s has new events", session)
		}
	}
}

// Somebody takes the sessions of a copy over: they go on there, and in the home as well if
// somebody serves it.
func TestTakeOverInACopy(t *testing.T) {
	for name, copyStore := range copies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, data := &homes{ran: map[string]int{}}, memory.New()
				h.fill(t, data)
				home, away, again := eventlog.Open(data), eventlog.Open(memory.New()), eventlog.Open(memory.New())
				for _, log := range []*eventlog.Log{home, away, again} {
					defer log.Close()
				}
				ctx := t.Context()
				if err := copyStore(ctx, away, home); err != nil {
					t.Fatal(err)
				}
				if err := decide(ctx, away); !errors.As(err, new(*flow.HomeError)) {
					t.Fatalf("an answer in a copy: %v", err)
				}
				for _, session := range []string{"reviewed", "family", "killed", "killed before", "posted", "forked"} {
					if _, err := flow.TakeOver(ctx, away, session, "me"); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(decide(ctx, away), copyStore(ctx, again, away)); err != nil {
					t.Fatal(err)
				}
				h.refused(t, away, again)
				if err := h.serve(ctx, away); err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(h.ran, homeRuns) {
					t.Fatalf("ran %v", h.ran)
				}
				id, err := away.StoreID(ctx)
				if err != nil {
					t.Fatal(err)
				}
				taken := false
				for e, err := range away.Read(ctx, "killed", eventlog.All()) {
					if err != nil {
						t.Fatal(err)
					}
					p, ok, _ := event.Decode[event.RunClaim](&e)
					taken = taken || ok && p.Runner == "me" && p.Store == id
				}
				if !taken {
					t.Fatal("the take-over is not in the log")
				}
			})
		})
	}
}
