package storetest

import (
	"errors"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

var hostileCases = []testCase{
	{
		name:        "ids that are no ids",
		explanation: "Ids that are empty, longer than 200 bytes, not UTF-8 or with control characters are refused by every method with ErrInvalidSession.",
		run:         testHostileInvalid,
	},
	{
		name:        "ids that look like something else",
		explanation: "An id that looks like a path, a file of the store or an escape works in full, or is refused with ErrInvalidSession; nothing is written outside the store.",
		run:         testHostileValid,
	},
	{
		name:        "ids that are almost equal",
		explanation: "Ids that differ only in case, in escapes, in normal form, at their 200th byte, or in a dot are different sessions.",
		run:         testHostileTwins,
	},
	{
		name:        "removed by id",
		explanation: "Removing a session with a hostile id removes it and no other.",
		needs:       []Need{Remover},
		run:         testHostileRemoved,
	},
}

// invalidIDs can never name a session.
func invalidIDs() []string {
	return []string{"", "\x00", "a\x00b", "a\nb", "a\rb", "\t", "\x1b[0m", "\x7f", "\u0085", "a\u009f", "\xff", "a\xc3", "\xed\xa0\x80",
		text("x", 201), strings.Repeat("é", 100) + "x"}
}

// trickyIDs are ids that a careless store trips over.
func trickyIDs() []string {
	return []string{".", "..", "../x", "../../x", "a/b", "/etc/passwd", "/", "//", `a\b`, `\\host\share`, "C:", "c:\\x", "ancestry", "blobs",
		"blobs/aa", ".lock", ".a", "a.", "a.jsonl", "a.jsonl.jsonl", "a.torn-0", "a~0123456789abcdef0123456789abcdef", "con", "nul", "aux.jsonl",
		"a%2fb", "%", "%%", "%zz", "%2e%2e", "a b", " ", " a", "a ", "-", "-rf", "--", "~", "*", "?", "a|b", "<a>", `"`, `'`, "'; drop table events; --",
		"$HOME", "`id`", "#", "&", "名前", "é", "e\u0301", "😀", "\u202e", "\ufeff", "\u00a0", "\u2028", "ı", "ß", "SS", "null", "0", "-1", "1e9", "{}", "sqlite_master",
		"main", "head", "a", "A", "aA", "Aa", text("x", 200), text("X", 200), text("%", 200), strings.Repeat("é", 100), text("x", 199) + "y", text("./", 200)}
}

func hostileIDs() []string {
	ids := append(invalidIDs(), trickyIDs()...)
	for i, id := range ids {
		if id == "a" {
			return append(ids[:i:i], ids[i+1:]...)
		}
	}
	return ids
}

func testHostileInvalid(t *env) {
	l := t.log()
	for _, id := range invalidIDs() {
		_, err := l.Append(t.ctx, id, eventlog.Any(), note(1))
		t.wantErr(event.ErrInvalidSession, err)
		_, err = l.Append(t.ctx, id, eventlog.Any())
		t.wantErr(event.ErrInvalidSession, err)
		_, err = collect(l.Read(t.ctx, id, eventlog.All()))
		t.wantErr(event.ErrInvalidSession, err)
		_, err = l.Head(t.ctx, id)
		t.wantErr(event.ErrInvalidSession, err)
		_, err = collect(l.Watch(t.ctx, id, 1))
		t.wantErr(event.ErrInvalidSession, err)
		t.wantErr(event.ErrInvalidSession, erase.Remove(t.ctx, l, id))
		_, err = l.Adopt(t.ctx, id, sequence(nil))
		t.wantErr(event.ErrInvalidSession, err)
	}
	infos, err := collect(l.Sessions(t.ctx))
	t.must(err)
	t.same("number of sessions", 0, len(infos))
	t.contained()
}

func testHostileValid(t *env) {
	l := t.log()
	var taken []string
	for _, id := range trickyIDs() {
		_, err := l.Append(t.ctx, id, eventlog.New(), noted(1, `{"id":`+quoted(id)+`}`), note(2))
		switch {
		case errors.Is(err, event.ErrInvalidSession):
			t.missingOrInvalid(l, id)
		case err != nil:
			t.Errorf("append to %q: %v", id, err)
		default:
			taken = append(taken, id)
		}
	}
	t.works(l, taken)
	t.works(t.reopen(), taken)
	t.contained()
}

func (t *env) missingOrInvalid(l *eventlog.Log, id string) {
	t.Helper()
	_, err := l.Head(t.ctx, id)
	if !errors.Is(err, eventlog.ErrNotFound) && !errors.Is(err, event.ErrInvalidSession) {
		t.Errorf("head of the refused session %q: %v", id, err)
	}
}

// works makes sure that sessions can be read, listed and appended to.
func (t *env) works(l *eventlog.Log, ids []string) {
	t.Helper()
	listed := map[string]int64{}
	for info, err := range l.Sessions(t.ctx) {
		t.must(errors.Join(err, info.Err))
		listed[info.ID] = info.Events()
	}
	t.same("number of sessions", len(ids), len(listed))
	for _, id := range ids {
		events := t.read(l, id, eventlog.All())
		t.same("events of "+id, listed[id], int64(len(events)))
		t.same("session id", id, events[0].SessionID)
		value, _ := events[0].MetadataValue("id")
		t.same("metadata", quoted(id), string(value))
		t.append(l, id, eventlog.At(t.head(l, id)), note(3))
	}
}

func testHostileTwins(t *env) {
	l := t.log()
	long := text("x", 199)
	for _, twins := range [][]string{{"a", "A"}, {"é", "e\u0301"}, {"a/b", "a%2fb"}, {"%2f", "/", "%252f"}, {"a", "a.", ".a", "a "},
		{long + "y", long + "z", long}, {text("A", 200), text("a", 200), text("%41", 200)}, {"ı", "I", "i", "İ"}, {"ß", "ss", "SS"}} {
		for n, id := range twins {
			t.append(l, id, eventlog.Any(), notes(n+1)...)
		}
		for _, id := range twins {
			for _, e := range t.read(l, id, eventlog.All()) {
				t.same("session id", id, e.SessionID)
			}
		}
	}
	infos, err := collect(l.Sessions(t.ctx))
	t.must(err)
	t.same("number of sessions", 25, len(infos))
}

func testHostileRemoved(t *env) {
	l := t.log()
	ids := []string{"..", "a/b", "A", "a", "blobs", text("%", 200), "*", "keep"}
	for _, id := range ids {
		t.fill(l, id, 2)
	}
	for i, id := range ids[:7] {
		t.must(erase.Remove(t.ctx, l, id))
		t.missing(l, id)
		infos, err := collect(l.Sessions(t.ctx))
		t.must(err)
		t.same("number of sessions", 7-i, len(infos))
	}
	t.same("lines", 2, len(t.lines(t.reopen(), "keep")))
	t.contained()
}
