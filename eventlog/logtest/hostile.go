package logtest

import (
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

var hostileCases = []testCase{
	{
		Name:        "any clock",
		Explanation: "With any clock an append stores events that verify, or returns ErrInvalidTimestamp. So does a redaction.",
		Run:         testClocks,
	},
	{
		Name:        "invalid ids",
		Explanation: "Every method rejects ids that are empty, over 200 bytes, not UTF-8 or with control characters with ErrInvalidSession.",
		Run:         testHostileInvalid,
	},
	{
		Name:        "tricky ids",
		Explanation: "An id that looks like a path, a file of the store or an escape works in all methods, or is rejected with ErrInvalidSession. Nothing is written outside the store.",
		Run:         testHostileValid,
	},
	{
		Name:        "similar ids",
		Explanation: "Ids that differ only in case, in escapes, in normal form, at their 200th byte, or in a dot are different sessions.",
		Run:         testHostileTwins,
	},
	{
		Name:        "removed by id",
		Explanation: "Removing a session with a hostile id removes this session only.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testHostileRemoved,
	},
}

func testHostileInvalid(t *env) {
	l := t.Main()
	for _, id := range suite.InvalidIDs() {
		_, err := l.Append(t.Ctx, id, eventlog.Any(), suite.Note(1))
		t.WantErr(event.ErrInvalidSession, err)
		_, err = l.Append(t.Ctx, id, eventlog.Any())
		t.WantErr(event.ErrInvalidSession, err)
		_, err = suite.Collect(l.Read(t.Ctx, id, eventlog.All()))
		t.WantErr(event.ErrInvalidSession, err)
		_, err = l.Head(t.Ctx, id)
		t.WantErr(event.ErrInvalidSession, err)
		_, err = suite.Collect(l.Watch(t.Ctx, id, 1))
		t.WantErr(event.ErrInvalidSession, err)
		t.WantErr(event.ErrInvalidSession, erase.Remove(t.Ctx, l, id))
		_, err = transfer.Adopt(t.Ctx, l, id, suite.Sequence(nil))
		t.WantErr(event.ErrInvalidSession, err)
	}
	infos, err := suite.Collect(l.Sessions(t.Ctx))
	t.Must(err)
	t.WantEqual("number of sessions", 0, len(infos))
	t.WantNoOtherFiles()
}

func testHostileValid(t *env) {
	l := t.Main()
	var taken []string
	for _, id := range suite.TrickyIDs() {
		_, err := l.Append(t.Ctx, id, eventlog.New(), suite.NoteWithMetadata(1, `{"id":`+suite.Quote(id)+`}`), suite.Note(2))
		switch {
		case errors.Is(err, event.ErrInvalidSession):
			t.missingOrInvalid(l, id)
		case err != nil:
			t.Errorf("append to %q: %v", id, err)
		default:
			taken = append(taken, id)
		}
	}
	t.wantUsable(l, taken)
	t.wantUsable(t.Reopen(), taken)
	t.WantNoOtherFiles()
}

func (t *env) missingOrInvalid(l *eventlog.Log, id string) {
	t.Helper()
	_, err := l.Head(t.Ctx, id)
	if !errors.Is(err, eventlog.ErrNotFound) && !errors.Is(err, event.ErrInvalidSession) {
		t.Errorf("head of the rejected session %q: %v", id, err)
	}
}

// wantUsable checks that sessions can be read, listed and appended to.
func (t *env) wantUsable(l *eventlog.Log, ids []string) {
	t.Helper()
	listed := map[string]int64{}
	for info, err := range l.Sessions(t.Ctx) {
		t.Must(errors.Join(err, info.Err))
		listed[info.ID] = info.Events()
	}
	t.WantEqual("number of sessions", len(ids), len(listed))
	for _, id := range ids {
		events := t.Read(l, id, eventlog.All())
		t.WantEqual("events of "+id, listed[id], int64(len(events)))
		t.WantEqual("session id", id, events[0].SessionID)
		value, _ := events[0].MetadataValue("id")
		t.WantEqual("metadata", suite.Quote(id), string(value))
		t.Append(l, id, eventlog.At(t.Head(l, id)), suite.Note(3))
	}
}

func testHostileTwins(t *env) {
	l := t.Main()
	long := suite.Text("x", 199)
	for _, twins := range [][]string{{"a", "A"}, {"é", "e\u0301"}, {"a/b", "a%2fb"}, {"%2f", "/", "%252f"}, {"a", "a.", ".a", "a "},
		{long + "y", long + "z", long}, {suite.Text("A", 200), suite.Text("a", 200), suite.Text("%41", 200)}, {"ı", "I", "i", "İ"}, {"ß", "ss", "SS"}} {
		for n, id := range twins {
			t.Append(l, id, eventlog.Any(), suite.Notes(n+1)...)
		}
		for _, id := range twins {
			for _, e := range t.Read(l, id, eventlog.All()) {
				t.WantEqual("session id", id, e.SessionID)
			}
		}
	}
	infos, err := suite.Collect(l.Sessions(t.Ctx))
	t.Must(err)
	t.WantEqual("number of sessions", 25, len(infos))
}

func testHostileRemoved(t *env) {
	l := t.Main()
	ids := []string{"..", "a/b", "A", "a", "blobs", suite.Text("%", 200), "*", "keep"}
	for _, id := range ids {
		t.Fill(l, id, 2)
	}
	for i, id := range ids[:7] {
		t.Must(erase.Remove(t.Ctx, l, id))
		t.WantMissing(l, id)
		infos, err := suite.Collect(l.Sessions(t.Ctx))
		t.Must(err)
		t.WantEqual("number of sessions, with the notes of the store", 7-i+1, len(infos))
	}
	t.WantEqual("lines", 2, len(t.Lines(t.Reopen(), "keep")))
	t.WantNoOtherFiles()
}
