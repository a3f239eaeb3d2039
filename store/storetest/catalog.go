package storetest

import (
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var catalogCases = []testCase{
	{
		Name:        "keeps rows",
		Explanation: "Cataloger: a row is returned byte for byte, replaced by a later one, and survives a reopen and an append. A session without a row is left out.",
		Needs:       []suite.Need{suite.Cataloger, suite.Versioner, suite.Locker},
		Run:         testCatalogRows,
	},
	{
		Name:        "leaves out stale rows",
		Explanation: "Cataloger: a row of another version of its session, or of a missing session, is not stored.",
		Needs:       []suite.Need{suite.Cataloger, suite.Versioner, suite.Locker},
		Run:         testCatalogStale,
	},
	{
		Name:        "erases rows",
		Explanation: "Cataloger: Rewrite and RemoveSession erase the row of their session and no other one. A row that was read before cannot be stored after.",
		Needs:       []suite.Need{suite.Cataloger, suite.Versioner, suite.Locker, suite.Eraser},
		Run:         testCatalogErased,
	},
	{
		Name:        "erases rows of replaced sessions",
		Explanation: "Cataloger: Replace erases the row of its session.",
		Needs:       []suite.Need{suite.Cataloger, suite.Versioner, suite.Locker, suite.Salvager},
		Run:         testCatalogReplaced,
	},
	{
		Name:        "read-only has rows",
		Explanation: "Cataloger: a read-only store returns rows and stores none.",
		Needs:       []suite.Need{suite.Cataloger, suite.Versioner, suite.Locker, suite.ReadOnly},
		Run:         testCatalogReadOnly,
	},
}

// catalogRow is a row of a session at its present version.
func (t *env) catalogRow(s eventlog.Store, session, data string) eventlog.CatalogRow {
	t.Helper()
	at, err := suite.Ability[eventlog.Versioner](t, s).Version(t.Ctx, session)
	t.Must(err)
	return eventlog.CatalogRow{Session: session, At: at, Data: []byte(data)}
}

func (t *env) putRows(s eventlog.Store, rows ...eventlog.CatalogRow) {
	t.Helper()
	ctx, unlock, err := suite.Ability[eventlog.Locker](t, s).Lock(t.Ctx, false)
	t.Must(err)
	defer unlock()
	t.Must(suite.Ability[eventlog.Cataloger](t, s).PutCatalogRows(ctx, rows))
}

// wantRows compares the rows of some sessions with text as "session=row".
func (t *env) wantRows(s eventlog.Store, sessions string, want ...string) {
	t.Helper()
	rows, err := suite.Ability[eventlog.Cataloger](t, s).CatalogRows(t.Ctx, strings.Fields(sessions))
	t.Must(err)
	got := []string{}
	for _, id := range strings.Fields(sessions) {
		if row, ok := rows[id]; ok {
			got = append(got, id+"="+string(row))
		}
	}
	t.WantEqual("rows", append([]string{}, want...), got)
	t.WantEqual("number of rows", len(want), len(rows))
}

func testCatalogRows(t *env) {
	s := t.Store()
	for _, id := range []string{"a", "b", "ç", "d"} {
		t.AppendLines(s, event.Head{}, suite.BatchAfter(id, event.Head{}, 1))
	}
	t.wantRows(s, "a b missing")
	t.putRows(s, t.catalogRow(s, "a", "1"), t.catalogRow(s, "b", "2\x00\n\xff"), t.catalogRow(s, "ç", ""))
	t.wantRows(s, "a b ç d missing", "a=1", "b=2\x00\n\xff", "ç=")
	t.wantRows(s, "b", "b=2\x00\n\xff")
	long := strings.Repeat("long ", 20_000)
	t.putRows(s, t.catalogRow(s, "a", long))
	t.Append(t.Main(), "a", eventlog.Any(), suite.Notes(1)...)
	t.wantRows(s, "a", "a="+long)
	t.putRows(s, t.catalogRow(s, "a", "short"))
	t.Reopen()
	t.wantRows(t.Store(), "a b", "a=short", "b=2\x00\n\xff")
	for info, err := range t.Store().Sessions(t.Ctx) {
		t.Must(err)
		t.Must(info.Err)
	}
}

func testCatalogStale(t *env) {
	s := t.Store()
	t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 1))
	old := t.catalogRow(s, "a", "old")
	t.Append(t.Main(), "a", eventlog.Any(), suite.Notes(1)...)
	t.putRows(s, old, eventlog.CatalogRow{Session: "missing", Data: []byte("x")})
	t.wantRows(s, "a missing")
}

func testCatalogErased(t *env) {
	s := t.Store()
	eraser := suite.Ability[eventlog.Eraser](t, s)
	heads, events := map[string]event.Head{}, map[string][]event.Event{}
	var rows []eventlog.CatalogRow
	for _, id := range []string{"rewritten", "removed", "other"} {
		events[id] = suite.BatchAfter(id, event.Head{}, 2)
		heads[id] = t.AppendLines(s, event.Head{}, events[id])
		rows = append(rows, t.catalogRow(s, id, "of "+id))
	}
	t.putRows(s, rows...)
	t.Must(eraser.Rewrite(t.Ctx, "rewritten", heads["rewritten"], []event.Event{suite.RedactedLine(events["rewritten"][0])}, nil))
	t.Must(eraser.RemoveSession(t.Ctx, "removed", heads["removed"]))
	t.wantRows(s, "rewritten removed other", "other=of other")
	t.AppendLines(s, event.Head{}, suite.BatchAfter("removed", event.Head{}, 2))
	t.putRows(s, rows...)
	t.wantRows(s, "rewritten removed other", "other=of other")
}

func testCatalogReplaced(t *env) {
	s := t.Store()
	events := suite.BatchAfter("a", event.Head{}, 2)
	t.AppendLines(s, event.Head{}, events)
	row := t.catalogRow(s, "a", "old")
	t.putRows(s, row)
	_, err := suite.Ability[eventlog.Salvager](t, s).Replace(t.Ctx, "a", row.At, func(yield func(event.Event, error) bool) { yield(events[0], nil) })
	t.Must(err)
	t.wantRows(s, "a")
}

func testCatalogReadOnly(t *env) {
	s := t.Store()
	t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 1))
	row := t.catalogRow(s, "a", "row")
	t.putRows(s, row)
	r := t.ReadOnly().Store()
	t.wantRows(r, "a", "a=row")
	err := suite.Ability[eventlog.Cataloger](t, r).PutCatalogRows(t.Ctx, []eventlog.CatalogRow{row})
	t.WantErr(eventlog.ErrReadOnly, err)
}
