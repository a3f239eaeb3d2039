package storetest

import (
	"context"
	"errors"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var identityCases = []testCase{
	{
		Name:        "stays",
		Explanation: "Identifier: the id of a store is not empty, and is the same after a reopen and in a read-only store. Sessions and blobs do not change it.",
		Needs:       []suite.Need{suite.Identifier},
		Run: func(t *env) {
			want := t.storeID(t.Main().Store())
			if want == "" {
				t.Errorf("the id is empty")
			}
			t.Fill(t.Main(), "a", 3)
			t.WantEqual("id after a reopen", want, t.storeID(t.Reopen().Store()))
			if t.Harness.OpenReadOnly != nil {
				t.WantEqual("id in a read-only store", want, t.storeID(t.ReadOnly().Store()))
			}
		},
	},
	{
		Name:        "one of many makers",
		Explanation: "Identifier: of several handles that ask for the id of a new store at the same time, all get the same id.",
		Needs:       []suite.Need{suite.Identifier, suite.Handles},
		Run: func(t *env) {
			var stores [4]eventlog.Store
			for i := range stores {
				stores[i] = t.Open()
			}
			var ids [len(stores)]string
			t.Must(errors.Join(suite.Concurrently(len(stores), func(i int) (err error) {
				ids[i], err = suite.Ability[eventlog.Identifier](t, stores[i]).StoreID(t.Ctx)
				return err
			})...))
			for _, id := range ids {
				t.WantEqual("id", ids[0], id)
			}
		},
	},
	{
		Name:        "no session",
		Explanation: "Identifier: the id is no session, no leftover and no damage. With an ended context, StoreID returns its error.",
		Needs:       []suite.Need{suite.Identifier},
		Run: func(t *env) {
			s := t.Main().Store()
			_, err := suite.Ability[eventlog.Identifier](t, s).StoreID(t.EndedContext())
			t.WantErr(context.Canceled, err)
			t.storeID(s)
			infos, err := suite.Collect(s.Sessions(t.Ctx))
			t.Must(err)
			t.WantEqual("number of sessions", 0, len(infos))
			t.Fill(t.Main(), "a", 3)
			t.WantVerified(t.Main(), "a")
			if sweeper, ok := eventlog.As[eventlog.Sweeper](s); ok {
				left, err := suite.Collect(sweeper.Sweep(t.Ctx, false))
				t.Must(err)
				t.WantEqual("number of leftovers", 0, len(left))
			}
			if checker, ok := eventlog.As[eventlog.Checker](s); ok {
				defects, err := suite.Defects(checker.Check(t.Ctx))
				t.Must(err)
				t.WantEqual("number of defects", 0, len(defects))
			}
		},
	},
	{
		Name:        "read-only",
		Explanation: "Identifier: a read-only store without an id returns an empty id, and makes none.",
		Needs:       []suite.Need{suite.Identifier, suite.ReadOnly},
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 3)
			t.Close()
			before := t.Files()
			first := t.storeID(t.ReadOnly().Store())
			t.Close()
			t.WantEqual("files", before, t.Files())
			if id := t.storeID(t.Reopen().Store()); first != "" && first != id {
				t.Errorf("the id was %q, and is %q", first, id)
			}
		},
	},
}

// storeID is the id of a store.
func (t *env) storeID(s eventlog.Store) string {
	t.Helper()
	id, err := suite.Ability[eventlog.Identifier](t, s).StoreID(t.Ctx)
	t.Must(err)
	return id
}
