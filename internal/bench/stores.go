//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/sessiontree"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/retire"
	"github.com/convlog/convlog/upkeep/verify"
)

// storeShape is how the sessions of a store descend from each other.
type storeShape string

const (
	apart  storeShape = "apart"  // no session descends from another one
	forked storeShape = "forked" // each session is a fork of the first one
	chain  storeShape = "chain"  // each session is a fork of the session before it
)

// manySessions is a store with many sessions.
type manySessions struct {
	log   *eventlog.Log
	shape storeShape
	ids   []string
	// redacted is the number of redactions of the first session.
	redacted int
}

// firstMessages is the number of messages of the first session. A redaction erases one.
const firstMessages = 64

// fillMany creates n sessions of a shape, each with two own messages.
func fillMany(ctx context.Context, log *eventlog.Log, shape storeShape, n int) (*manySessions, error) {
	s := &manySessions{log: log, shape: shape, ids: make([]string, n)}
	for i := range n {
		s.ids[i] = fmt.Sprintf("s%06d", i)
	}
	if _, err := log.PutBlob(ctx, strings.NewReader("nobody needs this")); err != nil {
		return nil, err
	}
	if _, err := log.Append(ctx, s.ids[0], eventlog.New(), users(firstMessages)...); err != nil {
		return nil, err
	}
	if err := s.create(ctx, s.ids[1:]); err != nil {
		return nil, err
	}
	return s, finishIndexing(ctx, log)
}

// create creates sessions, in the order of the ids.
func (s *manySessions) create(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if err := s.createOne(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (s *manySessions) createOne(ctx context.Context, id string) error {
	parent := s.ids[0]
	switch i, _ := slices.BinarySearch(s.ids, id); s.shape {
	case chain:
		parent = s.ids[i-1]
	case apart:
		_, err := s.log.Append(ctx, id, eventlog.New(), event.UserMessage("what about this?"), event.New(assistant(event.Text("nothing"))))
		return err
	}
	if _, err := fork.At(ctx, s.log, parent, fork.Head(), fork.Options{ID: id, Force: true}); err != nil {
		return err
	}
	_, err := s.log.Append(ctx, id, eventlog.Any(), event.UserMessage("what about this?"), event.New(assistant(event.Text("nothing"))))
	return err
}

// last are the ids of the last tenth of the sessions, the newest first: no other session
// descends from them.
func (s *manySessions) last() []string {
	ids := slices.Clone(s.ids[len(s.ids)-len(s.ids)/10:])
	slices.Reverse(ids)
	return ids
}

// storeOperation is a use of a store whose cost may grow with its sessions.
type storeOperation struct {
	name   string
	shapes []storeShape
	run    func(ctx context.Context, s *manySessions) error
	// undo restores the store.
	undo func(ctx context.Context, s *manySessions) error
}

var (
	anyStore    = []storeShape{apart, forked, chain}
	forkedStore = []storeShape{forked, chain}
	storeApart  = []storeShape{apart}
)

// storeOperations are what logtool does over a store: ls, tree, cost, stats, verify, gc,
// rm, search, retire, redact.
var storeOperations = []storeOperation{
	{name: "list", shapes: anyStore, run: func(ctx context.Context, s *manySessions) error {
		n, err := countSessions(ctx, s.log)
		return errors.Join(err, expectCount(n, len(s.ids)))
	}},
	{name: "tree", shapes: anyStore, run: func(ctx context.Context, s *manySessions) error {
		forest, err := fork.Tree(ctx, s.log)
		if err != nil {
			return err
		}
		n := 0
		for range forest.All() {
			n++
		}
		return expectCount(n, len(s.ids))
	}},
	{name: "below", shapes: forkedStore, run: func(ctx context.Context, s *manySessions) error {
		tree, err := sessiontree.Load(ctx, s.log, s.ids[0])
		return errors.Join(err, expectCount(len(tree.Sessions), len(s.ids)))
	}},
	{name: "tree-cost", shapes: forkedStore, run: func(ctx context.Context, s *manySessions) error {
		_, err := stats.LoadTreeCost(ctx, s.log, s.ids[0])
		return err
	}},
	each("cost", storeApart, func(ctx context.Context, log *eventlog.Log, session string) error {
		_, err := stats.LoadCost(ctx, log, session)
		return err
	}),
	each("stats", anyStore, func(ctx context.Context, log *eventlog.Log, session string) error {
		_, err := stats.Load(ctx, log, session)
		return err
	}),
	{name: "verify", shapes: anyStore, run: func(ctx context.Context, s *manySessions) error {
		v := verify.New(s.log)
		for _, id := range s.ids {
			if err := verifySound(ctx, v, id); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "search", shapes: anyStore, run: func(ctx context.Context, s *manySessions) error {
		_, err := countHits(ctx, s.log, search.Query{Text: noWord})
		return err
	}},
	{name: "gc", shapes: anyStore, run: func(ctx context.Context, s *manySessions) error {
		_, err := erase.Collect(ctx, s.log, erase.CollectOptions{Grace: -1, DryRun: true})
		return err
	}},
	{name: "retire", shapes: anyStore, run: func(ctx context.Context, s *manySessions) error {
		plan, err := retire.NewPlan(ctx, s.log, time.Now().Add(time.Hour))
		if err != nil {
			return err
		}
		return expectCount(len(plan.Sessions), len(s.ids))
	}},
	{name: "make", shapes: anyStore,
		run: func(ctx context.Context, s *manySessions) error {
			more := &manySessions{log: s.log, shape: s.shape, ids: slices.Clone(s.ids)}
			for i := range len(s.ids) / 10 {
				more.ids = append(more.ids, fmt.Sprintf("t%06d", i))
			}
			return more.create(ctx, more.ids[len(s.ids):])
		},
		undo: func(ctx context.Context, s *manySessions) error {
			var made []string
			for i := range len(s.ids) / 10 {
				made = append(made, fmt.Sprintf("t%06d", i))
			}
			slices.Reverse(made)
			return removeEach(ctx, s.log, made)
		}},
	{name: "rm", shapes: anyStore,
		run: func(ctx context.Context, s *manySessions) error { return removeEach(ctx, s.log, s.last()) },
		undo: func(ctx context.Context, s *manySessions) error {
			return s.create(ctx, s.ids[len(s.ids)-len(s.ids)/10:])
		}},
	{name: "redact", shapes: forkedStore, run: func(ctx context.Context, s *manySessions) error {
		s.redacted++
		_, err := erase.Redact(ctx, s.log, s.ids[0], []int64{int64(s.redacted)})
		return err
	}},
}

// each is an operation on each session.
func each(name string, shapes []storeShape, run func(ctx context.Context, log *eventlog.Log, session string) error) storeOperation {
	return storeOperation{name: name, shapes: shapes, run: func(ctx context.Context, s *manySessions) error {
		for _, id := range s.ids {
			if err := run(ctx, s.log, id); err != nil {
				return err
			}
		}
		return nil
	}}
}

func removeEach(ctx context.Context, log *eventlog.Log, ids []string) error {
	return erase.RemoveEach(ctx, log, ids, func(string) error { return nil })
}
