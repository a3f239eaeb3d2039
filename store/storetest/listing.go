package storetest

import (
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
)

var listingCases = []testCase{
	{
		Name:        "rows",
		Explanation: "Sessions lists every session once, ordered by id, with the session's own first and last event and the size of its lines.",
		Run:         testListingRows,
	},
	{
		Name:        "many",
		Explanation: "A listing of many sessions is complete and in order.",
		Run:         testListingMany,
	},
	{
		Name:        "stopped early",
		Explanation: "A caller can stop a listing at any row and can write during it.",
		Run:         testListingStopped,
	},
	{
		Name:        "prefixes",
		Explanation: "Resolve finds a session by its id or a unique prefix. A full id wins over a prefix of other ids.",
		Run:         testListingResolve,
	},
}

func testListingRows(t *env) {
	l := t.Main()
	want := map[string]int{"b": 3, "a": 1, "B": 2, "ab": 4, "a.b": 1, "é": 2}
	for session, n := range want {
		t.Append(l, session, eventlog.New(), suite.Notes(n)...)
	}
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		infos, err := suite.Collect(l.Sessions(t.Ctx))
		t.Must(err)
		var ids []string
		for i := range infos {
			t.wantRow(l, &infos[i], want[infos[i].ID])
			ids = append(ids, infos[i].ID)
		}
		t.WantEqual("ids", []string{"B", "a", "a.b", "ab", "b", "é"}, ids)
	})
}

// wantRow checks a row of a listing against the session.
func (t *env) wantRow(l *eventlog.Log, info *eventlog.SessionInfo, events int) {
	t.Helper()
	if info.Err != nil {
		t.Errorf("session %q: %v", info.ID, info.Err)
		return
	}
	lines := t.Lines(l, info.ID)
	size := int64(0)
	for _, line := range lines {
		size += int64(len(line)) + 1
	}
	t.WantEqual("events of "+info.ID, int64(events), info.Events())
	t.WantEqual("first line of "+info.ID, lines[0], string(info.First.Line()))
	t.WantEqual("last line of "+info.ID, lines[len(lines)-1], string(info.Last.Line()))
	if diff := size - info.Bytes; diff < 0 || diff > int64(len(lines)) {
		t.Errorf("session %q with %d lines: the listing has %d bytes, the lines and newlines have %d", info.ID, len(lines), info.Bytes, size)
	}
}

func testListingMany(t *env) {
	l := t.Main()
	var want []string
	count := testsize.Pick(75, 150, 300)
	for n := range count {
		id := fmt.Sprintf("session %d of many", n*7919%count)
		want = append(want, id)
		t.Append(l, id, eventlog.New(), suite.Note(n))
	}
	slices.Sort(want)
	infos, err := suite.Collect(l.Sessions(t.Ctx))
	t.Must(err)
	var ids []string
	for i := range infos {
		ids = append(ids, infos[i].ID)
		t.Must(infos[i].Err)
	}
	t.WantEqual("ids", want, ids)
}

func testListingStopped(t *env) {
	l := t.Main()
	for n := range 12 {
		t.Fill(l, fmt.Sprintf("s%02d", n), 1)
	}
	for stop := range 13 {
		n := 0
		for _, err := range l.Sessions(t.Ctx) {
			t.Must(err)
			t.Fill(l, "s05", 1)
			if n++; n > stop {
				break
			}
		}
	}
	t.WantVerified(l, "s05")
}

func testListingResolve(t *env) {
	l := t.Main()
	for _, id := range []string{"order-1", "order-12", "order-123", "other", "Über"} {
		t.Fill(l, id, 1)
	}
	for prefix, want := range map[string]string{"order-1": "order-1", "order-12": "order-12", "order-123": "order-123", "ot": "other", "Ü": "Über"} {
		got, err := l.Resolve(t.Ctx, prefix)
		t.Must(err)
		t.WantEqual("session of "+prefix, want, got)
	}
	_, err := l.Resolve(t.Ctx, "missing")
	t.WantErr(eventlog.ErrNotFound, err)
	if got, err := l.Resolve(t.Ctx, "order"); err == nil {
		t.Errorf("an ambiguous prefix resolved to %q", got)
	}
}
