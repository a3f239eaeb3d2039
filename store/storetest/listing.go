package storetest

import (
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
)

var listingCases = []testCase{
	{
		name:        "rows",
		explanation: "Sessions lists every session once, ordered by id, with its own first and last event and the size of its lines.",
		run:         testListingRows,
	},
	{
		name:        "many",
		explanation: "A listing of many sessions is complete and in order.",
		run:         testListingMany,
	},
	{
		name:        "stopped early",
		explanation: "A listing may be stopped at any row, and writing goes on during it.",
		run:         testListingStopped,
	},
	{
		name:        "prefixes",
		explanation: "Resolve finds a session by its id or a unique prefix; an id wins over being a prefix of others.",
		run:         testListingResolve,
	},
}

func testListingRows(t *env) {
	l := t.log()
	want := map[string]int{"b": 3, "a": 1, "B": 2, "ab": 4, "a.b": 1, "é": 2}
	for session, n := range want {
		t.append(l, session, eventlog.New(), notes(n)...)
	}
	t.twice(func(l *eventlog.Log) {
		infos, err := collect(l.Sessions(t.ctx))
		t.must(err)
		var ids []string
		for i := range infos {
			t.row(l, &infos[i], want[infos[i].ID])
			ids = append(ids, infos[i].ID)
		}
		t.same("ids", []string{"B", "a", "a.b", "ab", "b", "é"}, ids)
	})
}

// row compares a row of a listing with the session itself.
func (t *env) row(l *eventlog.Log, info *eventlog.SessionInfo, events int) {
	t.Helper()
	if info.Err != nil {
		t.Errorf("session %q: %v", info.ID, info.Err)
		return
	}
	lines := t.lines(l, info.ID)
	size := int64(0)
	for _, line := range lines {
		size += int64(len(line)) + 1
	}
	t.same("events of "+info.ID, int64(events), info.Events())
	t.same("first line of "+info.ID, lines[0], string(info.First.Line()))
	t.same("last line of "+info.ID, lines[len(lines)-1], string(info.Last.Line()))
	if diff := size - info.Bytes; diff < 0 || diff > int64(len(lines)) {
		t.Errorf("session %q of %d lines: listed as %d bytes, its lines with newlines have %d", info.ID, len(lines), info.Bytes, size)
	}
}

func testListingMany(t *env) {
	l := t.log()
	var want []string
	for n := range 300 {
		id := fmt.Sprintf("session %d of many", n*7919%300)
		want = append(want, id)
		t.append(l, id, eventlog.New(), note(n))
	}
	slices.Sort(want)
	infos, err := collect(l.Sessions(t.ctx))
	t.must(err)
	var ids []string
	for i := range infos {
		ids = append(ids, infos[i].ID)
		t.must(infos[i].Err)
	}
	t.same("ids", want, ids)
}

func testListingStopped(t *env) {
	l := t.log()
	for n := range 12 {
		t.fill(l, fmt.Sprintf("s%02d", n), 1)
	}
	for stop := range 13 {
		n := 0
		for _, err := range l.Sessions(t.ctx) {
			t.must(err)
			t.fill(l, "s05", 1)
			if n++; n > stop {
				break
			}
		}
	}
	t.sound(l, "s05")
}

func testListingResolve(t *env) {
	l := t.log()
	for _, id := range []string{"order-1", "order-12", "order-123", "other", "Über"} {
		t.fill(l, id, 1)
	}
	for prefix, want := range map[string]string{"order-1": "order-1", "order-12": "order-12", "order-123": "order-123", "ot": "other", "Ü": "Über"} {
		got, err := l.Resolve(t.ctx, prefix)
		t.must(err)
		t.same("session of "+prefix, want, got)
	}
	_, err := l.Resolve(t.ctx, "nobody")
	t.wantErr(eventlog.ErrNotFound, err)
	if got, err := l.Resolve(t.ctx, "order"); err == nil {
		t.Errorf("an ambiguous prefix gave %q", got)
	}
}
