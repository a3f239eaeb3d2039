package storetest

import (
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
)

var lookupCases = []testCase{
	{
		Name:        "parts",
		Explanation: "Lister: a part of the sessions has the rows of the whole listing with the prefix, after the id, in order.",
		Needs:       []suite.Need{suite.Lister},
		Run:         testLookupParts,
	},
	{
		Name:        "relations",
		Explanation: "Relater: the forks, copies and runs of a session are found, of a missing session too, and so is a session with the same first event.",
		Needs:       []suite.Need{suite.Relater},
		Run:         testLookupRelations,
	},
	{
		Name:        "relations of removed and replaced sessions",
		Explanation: "Relater: a removed session is not found, and a replaced session is found by its new first event.",
		Needs:       []suite.Need{suite.Relater, suite.Eraser, suite.Salvager, suite.Versioner},
		Run:         testLookupRelationsChange,
	},
	{
		Name:        "unknown relations",
		Explanation: "Relater: a session whose first event does not tell its relations is related to every session.",
		Needs:       []suite.Need{suite.Relater, suite.Blobs},
		Run:         testLookupUnknown,
	},
	{
		Name:        "users of blobs",
		Explanation: "BlobIndex: exactly the events that list a blob are its users, after appends, redactions, removals and replacements.",
		Needs:       []suite.Need{suite.BlobIndex, suite.Eraser, suite.Salvager, suite.Versioner},
		Run:         testLookupUsers,
	},
}

func testLookupParts(t *env) {
	l := t.Main()
	for _, id := range append(suite.TrickyIDs(), "a.b", "ab", "abc", "ac", "b", "éa") {
		t.Fill(l, id, 2)
	}
	for n := range t.Volume(200) {
		t.Fill(l, fmt.Sprintf("many %03d", n), 1)
	}
	all, err := suite.Collect(l.Sessions(t.Ctx))
	t.Must(err)
	lister := suite.Ability[eventlog.Lister](t, t.Store())
	for i, prefix := range []string{"", "a", "ab", "many 1", "é", "missing", all[0].ID, all[len(all)-1].ID} {
		for j, after := range []string{"", "a", "aa", "many 15", "é", "\U0010ffff", all[0].ID, all[len(all)-1].ID} {
			if !testsize.Every(i+j, 2) {
				continue
			}
			part := eventlog.Part{Prefix: prefix, After: after}
			want := []string{}
			for _, info := range all {
				if part.Has(info.ID) {
					want = append(want, info.ID)
				}
			}
			found, err := suite.Collect(lister.List(t.Ctx, part))
			t.Must(err)
			t.WantEqual(fmt.Sprintf("sessions of %+v", part), want, idsOf(found))
			if len(found) > 0 {
				t.wantRow(l, &found[0], int(found[0].Events()))
			}
		}
	}
}

func idsOf(infos []eventlog.SessionInfo) []string {
	ids := []string{}
	for i := range infos {
		ids = append(ids, infos[i].ID)
	}
	return ids
}

// wantRelated checks the sessions that are related to one.
func (t *env) wantRelated(session string, want ...string) {
	t.Helper()
	found, err := suite.Collect(suite.Ability[eventlog.Relater](t, t.Store()).Related(t.Ctx, session))
	t.Must(err)
	t.WantEqual("sessions related to "+session, append([]string{}, want...), idsOf(found))
	for i := range found {
		t.wantRow(t.Main(), &found[i], int(found[i].Events()))
	}
}

func testLookupRelations(t *env) {
	l := t.Main()
	t.Fill(l, "a", 3)
	t.Fill(l, "other", 1)
	t.Append(l, "fork", eventlog.New(), t.ForkAt("a", 2))
	t.Append(l, "fork of fork", eventlog.New(), t.ForkAt("fork", 3))
	t.Append(l, "run", eventlog.New(), suite.NewEvent(event.SessionStarted, `{"parent":{"session_id":"a"}}`))
	t.Append(l, "copy", eventlog.New(), suite.NoteWithMetadata(1, `{"copy_of":{"session_id":"fork","through":3},"fork_origin":{"session_id":"a","seq":1}}`))
	t.Append(l, "copy of gone", eventlog.New(), suite.NoteWithMetadata(1, `{"copy_of":{"session_id":"gone","through":3}}`))
	first := t.EventAt(l, "a", 1)
	t.AppendLines(t.Store(), event.Head{}, suite.ChainAfter("repaired", event.Head{}, suite.Line{Data: "1", ID: first.ID}))
	for range 2 {
		t.wantRelated("a", "a", "copy", "fork", "repaired", "run")
		t.wantRelated("repaired", "a", "repaired")
		t.wantRelated("fork", "copy", "fork", "fork of fork")
		t.wantRelated("gone", "copy of gone")
		t.wantRelated("other", "other")
		t.wantRelated("missing")
		t.Append(l, "fork", eventlog.Any(), suite.Note(9)) // a later event does not change the relations
		l = t.Reopen()
	}
}

func testLookupRelationsChange(t *env) {
	l := t.Main()
	t.Fill(l, "a", 3)
	t.Fill(l, "b", 3)
	head := t.Append(l, "f", eventlog.New(), t.ForkAt("a", 2))
	t.Append(l, "g", eventlog.New(), t.ForkAt("a", 2))
	t.wantRelated("a", "a", "f", "g")
	t.Must(suite.Ability[eventlog.Eraser](t, t.Store()).RemoveSession(t.Ctx, "f", head))
	t.wantRelated("a", "a", "g")
	t.Append(l, "x", eventlog.New(), t.ForkAt("b", 1))
	lines := t.Span(t.Store(), "x", eventlog.Span{})
	t.replace("g", suite.ChainAfter("g", event.Head{}, suite.Line{Data: string(lines[0].Data), Typ: string(event.SessionForked)}))
	t.wantRelated("a", "a")
	t.wantRelated("b", "b", "g", "x")
}

// replace replaces the lines of a session.
func (t *env) replace(session string, events []event.Event) {
	t.Helper()
	version, err := suite.Ability[eventlog.Versioner](t, t.Store()).Version(t.Ctx, session)
	t.Must(err)
	_, err = suite.Ability[eventlog.Salvager](t, t.Store()).Replace(t.Ctx, session, version, suite.Sequence(events))
	t.Must(err)
}

func testLookupUnknown(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 300})
	t.Fill(l, "a", 1)
	t.Append(l, "spilled", eventlog.New(), suite.NewEvent(event.SessionStarted, fmt.Sprintf(`{"title":%q,"parent":{"session_id":"a"}}`, suite.Text("title ", 400))))
	t.Append(l, "lost", eventlog.New(), suite.NewEvent(event.Lost, `{"reason":"unreadable"}`))
	t.wantRelated("a", "a", "lost", "spilled")
	t.wantRelated("missing", "lost", "spilled")
}

func testLookupUsers(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 300})
	one, other := t.putText(l, "one"), t.putText(l, "other")
	t.Append(l, "a", eventlog.New(), suite.Note(1), suite.Image(one), suite.Image(one), suite.Image(other))
	t.Append(l, "b", eventlog.New(), suite.Image(one), suite.NewEvent("test:note", `"`+suite.Text("spilled", 400)+`"`))
	t.wantUsers(l)
	events := t.Span(t.Store(), "a", eventlog.Span{})
	redacted := suite.RedactedLine(events[1])
	t.Must(suite.Ability[eventlog.Eraser](t, t.Store()).Rewrite(t.Ctx, "a", events[3].Head(), []event.Event{redacted}, nil))
	t.wantUsers(l)
	t.replace("b", suite.BatchAfter("b", event.Head{}, 2))
	t.wantUsers(l)
	t.Must(suite.Ability[eventlog.Eraser](t, t.Store()).RemoveSession(t.Ctx, "a", events[3].Head()))
	t.wantUsers(t.Reopen())
}

func (t *env) putText(l *eventlog.Log, text string) event.BlobRef {
	t.Helper()
	ref, err := l.PutBlob(t.Ctx, suite.NewReader(text))
	t.Must(err)
	return ref
}

// wantUsers compares the users of all blobs, and of a missing one, with the events.
func (t *env) wantUsers(l *eventlog.Log) {
	t.Helper()
	blobs, err := suite.Collect(suite.Ability[eventlog.Blobs](t, t.Store()).ListBlobs(t.Ctx))
	t.Must(err)
	digests := []event.Digest{event.DigestOf([]byte("missing"))}
	for _, b := range blobs {
		digests = append(digests, b.Digest)
	}
	want := []string{}
	for info, err := range l.Sessions(t.Ctx) {
		t.Must(err)
		for _, e := range t.Span(t.Store(), info.ID, eventlog.Span{}) {
			for _, d := range e.Blobs() {
				want = append(want, fmt.Sprint(d, info.ID, e.Seq))
			}
		}
	}
	got := []string{}
	for u, err := range suite.Ability[eventlog.BlobIndex](t, t.Store()).BlobUsers(t.Ctx, digests) {
		t.Must(err)
		got = append(got, fmt.Sprint(u.Digest, u.Session, u.Seq))
	}
	slices.Sort(want)
	slices.Sort(got)
	t.WantEqual("users of blobs", want, got)
}
