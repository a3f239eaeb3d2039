package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var removalCases = []testCase{
	{
		Name:        "stay",
		Explanation: "RemovalKeeper: marks are yielded in every handle, after a reopen and in a read-only store, each once, however often and in however many calls they were put.",
		Needs:       []suite.Need{suite.Removals, suite.Locker},
		Run: func(t *env) {
			t.wantRemovals(t.Main().Store())
			var many []string
			for i := range 6000 {
				many = append(many, fmt.Sprintf("ABCDEFGHIJKLMNOPQRSTUVWXYZ.%032x", i))
			}
			t.putRemovals(t.Main().Store(), many[0], many[1])
			t.putRemovals(t.Main().Store(), many[1:]...)
			t.putRemovals(t.Main().Store(), many[0])
			t.putRemovals(t.Main().Store())
			t.wantRemovals(t.Main().Store(), many...)
			t.wantRemovals(t.Reopen().Store(), many...)
			if t.Harness.OpenReadOnly != nil {
				s := t.ReadOnly().Store()
				t.wantRemovals(s, many...)
				t.WantErr(eventlog.ErrReadOnly, suite.Ability[eventlog.RemovalKeeper](t, s).PutRemovals(t.Ctx, many[:1]))
			}
		},
	},
	{
		Name:        "no session",
		Explanation: "RemovalKeeper: marks are no session, no leftover and no damage, and a sweep keeps them. With an ended context, the error is the context's.",
		Needs:       []suite.Need{suite.Removals, suite.Locker},
		Run: func(t *env) {
			s := t.Main().Store()
			t.putRemovals(s, "salt.hash")
			infos, err := suite.Collect(s.Sessions(t.Ctx))
			t.Must(err)
			t.WantEqual("number of sessions", 0, len(infos))
			t.Fill(t.Main(), "a", 3)
			t.WantVerified(t.Main(), "a")
			if sweeper, ok := eventlog.As[eventlog.Sweeper](s); ok {
				locked, unlock, err := suite.Ability[eventlog.Locker](t, s).Lock(t.Ctx, true)
				t.Must(err)
				left, err := suite.Collect(sweeper.Sweep(locked, true))
				unlock()
				t.Must(err)
				t.WantEqual("number of leftovers", 0, len(left))
			}
			if checker, ok := eventlog.As[eventlog.Checker](s); ok {
				defects, err := suite.Defects(checker.Check(t.Ctx))
				t.Must(err)
				t.WantEqual("number of defects", 0, len(defects))
			}
			t.wantRemovals(s, "salt.hash")
			_, err = suite.Collect(suite.Ability[eventlog.RemovalKeeper](t, s).Removals(t.EndedContext()))
			t.WantErr(context.Canceled, err)
		},
	},
	{
		Name:        "of many writers",
		Explanation: "RemovalKeeper: marks that several handles put at the same time, each under the exclusive store lock, are all stored.",
		Needs:       []suite.Need{suite.Removals, suite.Locker, suite.Handles},
		Run: func(t *env) {
			var stores [4]eventlog.Store
			var marks []string
			for i := range stores {
				stores[i] = t.Open()
				marks = append(marks, fmt.Sprintf("salt.%d", i))
			}
			t.Must(errors.Join(suite.Concurrently(len(stores), func(i int) error {
				locked, unlock, err := suite.Ability[eventlog.Locker](t, stores[i]).Lock(t.Ctx, true)
				if err != nil {
					return err
				}
				defer unlock()
				return suite.Ability[eventlog.RemovalKeeper](t, stores[i]).PutRemovals(locked, marks[i:i+1])
			})...))
			for _, s := range stores {
				t.wantRemovals(s, marks...)
			}
		},
	},
}

func (t *env) putRemovals(s eventlog.Store, marks ...string) {
	t.Helper()
	ctx, unlock, err := suite.Ability[eventlog.Locker](t, s).Lock(t.Ctx, true)
	t.Must(err)
	defer unlock()
	t.Must(suite.Ability[eventlog.RemovalKeeper](t, s).PutRemovals(ctx, marks))
}

// wantRemovals compares the marks of a store with marks in order.
func (t *env) wantRemovals(s eventlog.Store, marks ...string) {
	t.Helper()
	got, err := suite.Collect(suite.Ability[eventlog.RemovalKeeper](t, s).Removals(t.Ctx))
	t.Must(err)
	slices.Sort(got)
	if !slices.Equal(got, marks) {
		t.Errorf("the store has %d marks, want %d: %.200q", len(got), len(marks), got)
	}
}
