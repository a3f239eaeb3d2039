package logtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/searchtext"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/search"
)

var searchCases = []testCase{
	{
		Name:        "any query",
		Explanation: "Any text is a valid query and finds the events that contain it: words with signs, single letters, any script, unclosed quotes.",
		Run:         testSearchTyped,
	},
	{
		Name:        "words and phrases",
		Explanation: "All words of a query must be in one event, in any order and case. A phrase in quotes must be in the event as it is, except for the kind of its white space.",
		Run:         testSearchWords,
	},
	{
		Name:        "composed characters",
		Explanation: "A text is found in each normalization form of Unicode, also next to other forms, and in a query of each form.",
		Run:         testSearchForms,
	},
	{
		Name:        "without words",
		Explanation: "A query without words finds the events with a text for which Where is true, and its snippets are their beginnings.",
		Run:         testSearchWithoutWords,
	},
	{
		Name:        "random texts",
		Explanation: "A search finds exactly the events whose text contains the query, ordered by the last activity of their sessions and then newest first, with any state of the index.",
		Run:         testSearchRandom,
	},
	{
		Name:        "texts",
		Explanation: "Searches find the text that people read: texts, reasoning, calls with their arguments, results, titles, summaries. They do not find ids, names of members, bytes and snapshots.",
		Run:         testSearchText,
	},
	{
		Name:        "bodies",
		Explanation: "Searches include spilled data and text bodies.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testSearchBodies,
	},
	{
		Name:        "missing body",
		Explanation: "A search reports an event with a missing body and finds the other hits.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testSearchMissingBody,
	},
	{
		Name:        "forks",
		Explanation: "A fork's hits are its own events. In a search of one session, the hits of its ancestors up to the fork point follow.",
		Run:         testSearchForks,
	},
	{
		Name:        "rewound events",
		Explanation: "With Active, rewound events are no hits, except session-scoped events.",
		Run:         testSearchActive,
	},
	{
		Name:        "limits and types",
		Explanation: "Limit bounds all hits, PerSession bounds the hits of each session, Types selects the event types.",
		Run:         testSearchLimits,
	},
	{
		Name:        "newest session first",
		Explanation: "Sessions are ordered by their newest events.",
		Run:         testSearchOrder,
	},
	{
		Name:        "no query",
		Explanation: "An empty query is ErrInvalidQuery. A missing session is ErrNotFound.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 1)
			for _, text := range []string{"", " \t\n"} {
				_, err := suite.Collect(search.Events(t.Ctx, t.Main(), search.Query{Text: text}))
				t.WantErr(search.ErrInvalidQuery, err)
			}
			_, err := suite.Collect(search.Events(t.Ctx, t.Main(), search.Query{Text: "x", Session: "b"}))
			t.WantErr(eventlog.ErrNotFound, err)
			_, err = suite.Collect(search.Events(t.Ctx, t.Main(), search.Query{Text: "x", Session: "\x00"}))
			t.WantErr(event.ErrInvalidSession, err)
		},
	},
	{
		Name:        "context",
		Explanation: "A search ends when its context ends, and a caller can stop it at any hit.",
		Run:         testSearchCanceled,
	},
	{
		Name:        "redacted",
		Explanation: "A search does not find redacted text, whether the index had the text or not.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testSearchRedacted,
	},
	{
		Name:        "removed",
		Explanation: "A removed session has no hits. A recreated session has its own hits only.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testSearchRemoved,
	},
	{
		Name:        "read-only",
		Explanation: "A search of a read-only store finds all hits and writes nothing.",
		Needs:       []suite.Need{suite.ReadOnly},
		Run:         testSearchReadOnly,
	},
	{
		Name:        "other handles",
		Explanation: "A search finds the finished appends of other handles.",
		Needs:       []suite.Need{suite.Handles},
		Run:         testSearchHandles,
	},
	{
		Name:        "concurrent appends",
		Explanation: "A search during concurrent appends finds each event that was stored before it once.",
		Run:         testSearchContended,
	},
}

// userText returns a message of the user with any text.
func userText(text string) event.Event {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	return suite.NewEvent(event.MessageAdded, `{"role":"user","parts":[{"type":"text","text":`+string(quoted)+`}]}`)
}

// hits returns the hits of a query as session:seq.
func (t *env) hits(l *eventlog.Log, q search.Query) []string {
	t.Helper()
	hits := []string{}
	for hit, err := range search.Events(t.Ctx, l, q) {
		if err != nil {
			t.Fatalf("search %q: %v", q.Text, err)
		}
		t.checkHit(q, hit)
		hits = append(hits, fmt.Sprintf("%s:%d", hit.Session, hit.Seq))
	}
	return hits
}

// checkHit checks that the snippet of a hit shows the query.
func (t *env) checkHit(q search.Query, hit search.Hit) {
	t.Helper()
	terms, err := q.Terms()
	if q.Where == nil {
		t.Must(err)
	}
	if len(hit.Matches) == 0 && len(terms) > 0 {
		t.Errorf("search %q: %s:%d marks no match", q.Text, hit.Session, hit.Seq)
	}
	for _, m := range hit.Matches {
		text := searchtext.Fold(hit.Snippet[m[0]:m[1]])
		if !slices.ContainsFunc(terms, func(term string) bool { return strings.Contains(text, term) }) {
			t.Errorf("search %q: %s:%d marks %q", q.Text, hit.Session, hit.Seq, text)
		}
	}
	if hit.Event.Seq != hit.Seq || hit.Event.SessionID != hit.Session || hit.Type != hit.Event.Type {
		t.Errorf("search %q: the hit %s:%d has event %v", q.Text, hit.Session, hit.Seq, &hit.Event)
	}
}

// index updates the index, if the store has one.
func (t *env) index(l *eventlog.Log) {
	t.Helper()
	if err := search.Index(t.Ctx, l, false); err != nil && !errors.Is(err, eventlog.ErrUnsupported) {
		t.Fatalf("index: %v", err)
	}
}

// withIndexStates runs check with the current index, with an updated one, and with a
// rebuilt one.
func (t *env) withIndexStates(check func(l *eventlog.Log)) {
	t.Helper()
	check(t.Main())
	t.index(t.Main())
	check(t.Main())
	if err := search.Index(t.Ctx, t.Main(), true); err != nil && !errors.Is(err, eventlog.ErrUnsupported) {
		t.Fatalf("rebuild the index: %v", err)
	}
	check(t.Reopen())
}

func testSearchForms(t *env) {
	texts := []string{"My name is Jos\u00e9.", "My name is Jose\u0301.", "Jose, Josa\u0301", "\ud55c\uad6d", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "Vi\u1ec7t",
		"Vie\u0323\u0302t", "Vie\u0302\u0323t", "10 \u212b", "10 A\u030a", "\u304c", "\u304b\u3099", "\u304b", "\u00e9\u00e9 e\u0301\u00e9"}
	for _, text := range texts {
		t.Append(t.Main(), "a", eventlog.Any(), userText(text))
	}
	t.withIndexStates(func(l *eventlog.Log) {
		for _, c := range []struct {
			text string
			want []int64
		}{
			{"jos\u00e9", []int64{2, 1}}, {"JOSE\u0301", []int64{2, 1}}, {"jos", []int64{3, 2, 1}}, {"jose", []int64{3}}, {"\u00e9", []int64{14, 2, 1}},
			{"\ud55c", []int64{5, 4}}, {"\u1112\u1161\u11ab", []int64{5, 4}}, {"\uad6d", []int64{5, 4}},
			{"vi\u1ec7t", []int64{8, 7, 6}}, {"vie\u0302\u0323t", []int64{8, 7, 6}}, {"\u00e5", []int64{10, 9}}, {"\u304c", []int64{12, 11}}, {"\u304b", []int64{13}},
			{"e\u0301e\u0301", []int64{14}}, {"\"\u00e9 e\u0301\"", []int64{14}},
		} {
			want := []string{}
			for _, seq := range c.want {
				want = append(want, fmt.Sprintf("a:%d", seq))
			}
			t.WantEqual(fmt.Sprintf("hits of %+q", c.text), want, t.hits(l, search.Query{Text: c.text}))
		}
	})
}

func testSearchWithoutWords(t *env) {
	for _, text := range []string{"first", "second " + strings.Repeat("word ", 200), "", "third"} {
		t.Append(t.Main(), "a", eventlog.Any(), userText(text))
	}
	t.Append(t.Main(), "b", eventlog.Any(), userText("other"))
	inA := func(e *event.Event) bool { return e.SessionID == "a" }
	t.withIndexStates(func(l *eventlog.Log) {
		t.WantEqual("all", []string{"a:4", "a:2", "a:1"}, t.hits(l, search.Query{Where: inA}))
		t.WantEqual("limit", []string{"a:4", "a:2"}, t.hits(l, search.Query{Where: inA, Limit: 2}))
		t.WantEqual("session", []string{"b:1"}, t.hits(l, search.Query{Where: func(*event.Event) bool { return true }, Session: "b"}))
		for hit, err := range search.Events(t.Ctx, l, search.Query{Where: func(e *event.Event) bool { return e.SessionID == "a" && e.Seq == 2 }, Context: 10}) {
			t.Must(err)
			if hit.Snippet != "second word word" || hit.Before || !hit.After {
				t.Errorf("the snippet is %q, %v, %v", hit.Snippet, hit.Before, hit.After)
			}
		}
	})
}

func testSearchTyped(t *env) {
	texts := []string{
		"the foo-bar of store.go", "C++ and C#", `she said "unbalanced`, "go to", "日本語の検索", "Привет, Мир", "a👍🏽b", "naïve café",
		`C:\path\file and "quoted"`, "100% of $HOME/*", "tab\tand\nnewline", "nul\x00char", "f(x) AND NOT y OR NEAR(z)", "\u212a\u017f",
		"a\ufffdb", "<b>&amp;</b>",
	}
	for _, text := range texts {
		t.Append(t.Main(), "a", eventlog.Any(), userText(text))
	}
	t.withIndexStates(func(l *eventlog.Log) {
		for _, c := range []struct {
			text string
			want []int64
		}{
			{"foo-bar", []int64{1}}, {"O-B", []int64{1}}, {"store.go", []int64{1}}, {"c++", []int64{2}}, {"C#", []int64{2}}, {`"unbalanced`, []int64{3}},
			{`unbalanced"`, nil}, {"go", []int64{4, 1}}, {"検", []int64{5}}, {"検索", []int64{5}}, {"語の", []int64{5}}, {"привет", []int64{6}}, {"МИР", []int64{6}}, {"п", []int64{6}},
			{"👍", []int64{7}}, {"🏽b", []int64{7}}, {"é", []int64{8}}, {"cafe", nil}, {"CAFÉ", []int64{8}}, {`h\file`, []int64{9}}, {`"quoted"`, []int64{9}}, {`\`, []int64{9}},
			{"%", []int64{10}}, {"/*", []int64{10}}, {"$HOME", []int64{10}}, {`"tab and newline"`, []int64{11}}, {"l\x00c", []int64{12}}, {"near(z)", []int64{13}}, {"NOT", []int64{13}},
			{"k", nil}, {"\u212a", []int64{14}}, {"a\xffb", []int64{15}}, {"<b>&amp;</b>", []int64{16}}, {`""`, nil}, {"*", []int64{10}}, {"'", nil}, {";--", nil},
		} {
			want := []string{}
			for _, seq := range c.want {
				want = append(want, fmt.Sprintf("a:%d", seq))
			}
			t.WantEqual(fmt.Sprintf("hits of %q", c.text), want, t.hits(l, search.Query{Text: c.text}))
		}
	})
}

func testSearchWords(t *env) {
	t.Append(t.Main(), "a", eventlog.New(), userText("the quick brown fox"), userText("a quick note"), userText("a fox, brown\n\n  and QUICK"))
	t.withIndexStates(func(l *eventlog.Log) {
		for text, want := range map[string][]string{
			"quick":           {"a:3", "a:2", "a:1"},
			"fox quick":       {"a:3", "a:1"},
			"fox quick fox":   {"a:3", "a:1"},
			`"quick brown"`:   {"a:1"},
			`"brown and"`:     {"a:3"},
			`"and quick" fox`: {"a:3"},
			"row oTe":         {},
			"fox note":        {},
			`"uick  not"`:     {"a:2"},
		} {
			t.WantEqual("hits of "+text, want, t.hits(l, search.Query{Text: text}))
		}
	})
}

func testSearchText(t *env) {
	call := `{"role":"assistant","model":"hidden-model","parts":[{"type":"reasoning","text":"thinking aloud","signature":"hidden-signature"},
		{"type":"tool_call","call_id":"hidden-id","name":"read_file","arguments":{"path":"src/main.c","limit":4711,"deep":["inside"]}}]}`
	result := `{"role":"tool","parts":[{"type":"tool_result","call_id":"hidden-id","name":"read_file","content":[{"type":"text","text":"int main"}]}]}`
	note := suite.NewEvent("other:kind", `{"free":"hidden, since it repeats what another event says"}`)
	t.Must(note.SetMetadata("repeats", true))
	t.Append(t.Main(), "a", eventlog.New(),
		suite.NewEvent(event.SessionStarted, `{"title":"The Title","cwd":"/home/work"}`),
		suite.NewEvent(event.MessageAdded, call), suite.NewEvent(event.MessageAdded, result),
		suite.NewEvent(event.CompactionTriggered, `{"covers":{"from":1,"to":3},"summary":"what happened"}`),
		suite.NewEvent("other:kind", `{"free":{"hidden-member":"raw words"}}`),
		suite.NewEvent(event.MessageAdded, `{"role":"user","parts":[{"type":"document","name":"notes.txt","media_type":"text/plain","data":"c21hbGwgYm9keQ=="},
			{"type":"image","media_type":"image/png","data":"`+suite.Text("aGlkZGVu", 4000)+`"}]}`),
		suite.NewEvent("other:kind", `{"blob":"`+suite.Text("hidden", 4000)+`"}`), note,
	)
	t.withIndexStates(func(l *eventlog.Log) {
		for text, want := range map[string][]string{
			"title": {"a:1"}, "home/work": {}, "aloud": {"a:2"}, "read_file": {"a:3", "a:2"}, "main.c": {"a:2"}, "4711": {"a:2"}, "inside": {"a:2"},
			"int": {"a:3"}, "happened": {"a:4"}, "raw": {"a:5"}, "notes.txt": {"a:6"}, "small": {"a:6"}, "hidden": {}, "arguments": {}, "assistant": {}, "limit": {},
		} {
			t.WantEqual("hits of "+text, want, t.hits(l, search.Query{Text: text}))
		}
	})
}

func testSearchBodies(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 200})
	body, err := l.PutBlob(t.Ctx, suite.NewReader("the body of a document"))
	t.Must(err)
	document := fmt.Sprintf(`{"role":"user","parts":[{"type":"document","media_type":"text/markdown; charset=utf-8","blob":{"blob":%q,"bytes":%d}}]}`, body.Blob, body.Bytes)
	artifact := fmt.Sprintf(`{"artifact_id":"x","media_type":"application/pdf","body":{"blob":%q,"bytes":%d}}`, body.Blob, body.Bytes)
	t.Append(l, "a", eventlog.New(), userText(suite.Text("filler ", 300)+"spilled words"), suite.NewEvent(event.MessageAdded, document), suite.NewEvent(event.ArtifactRecorded, artifact))
	t.withIndexStates(func(l *eventlog.Log) {
		t.WantEqual("hits of spilled", []string{"a:1"}, t.hits(l, search.Query{Text: "spilled"}))
		t.WantEqual("hits of the body", []string{"a:2"}, t.hits(l, search.Query{Text: `"body of a"`}))
	})
}

func testSearchMissingBody(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 200})
	t.Append(l, "a", eventlog.New(), userText("needle 1"), userText(suite.Text("filler ", 300)+"needle 2"), userText("needle 3"))
	events := t.Read(l, "a", eventlog.All())
	t.Must(suite.Ability[eventlog.Blobs](t, t.Store()).RemoveBlobs(t.Ctx, []event.Digest{events[1].Blobs()[0]}))
	t.withIndexStates(func(l *eventlog.Log) {
		found := []string{}
		for hit, err := range search.Events(t.Ctx, l, search.Query{Text: "needle"}) {
			if hit.Seq == 2 {
				t.WantErr(eventlog.ErrBlobNotFound, err)
			} else {
				t.Must(err)
			}
			found = append(found, fmt.Sprintf("%s:%d", hit.Session, hit.Seq))
		}
		t.WantEqual("hits", []string{"a:3", "a:2", "a:1"}, found)
	})
}

func testSearchForks(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), userText("needle one"))
	fork := t.Append(l, "a", eventlog.Any(), userText("needle two"))
	t.Append(l, "a", eventlog.Any(), userText("needle three"))
	parent := t.Read(l, "a", eventlog.Between(2, 2))[0]
	origin := suite.NewEvent(event.SessionForked, fmt.Sprintf(`{"parent":"a","seq":2,"event_id":%q,"hash":%q}`, parent.ID, fork.Hash))
	t.Append(l, "b", eventlog.New(), origin, userText("needle in the fork"))
	t.Append(l, "c", eventlog.New(), userText("needle elsewhere"))
	t.Append(l, "a", eventlog.Any(), userText("nothing"))
	t.withIndexStates(func(l *eventlog.Log) {
		t.WantEqual("hits", []string{"a:3", "a:2", "a:1", "c:1", "b:4"}, t.hits(l, search.Query{Text: "needle"}))
		t.WantEqual("hits in the fork", []string{"b:4", "a:2", "a:1"}, t.hits(l, search.Query{Text: "needle", Session: "b"}))
		t.WantEqual("hits in the parent", []string{"a:3", "a:2", "a:1"}, t.hits(l, search.Query{Text: "needle", Session: "a"}))
		t.WantEqual("the newest in the fork", []string{"b:4", "a:2"}, t.hits(l, search.Query{Text: "needle", Session: "b", Limit: 2}))
	})
}

func testSearchActive(t *env) {
	l := t.Main()
	started := suite.NewEvent(event.SessionUpdated, `{"title":"needle of a title"}`)
	t.Append(l, "a", eventlog.New(), userText("needle 1"), userText("needle 2"), started, userText("needle 4"))
	t.Append(l, "a", eventlog.Any(), suite.HeadMove(1))
	t.Append(l, "a", eventlog.Any(), userText("needle 6"))
	t.withIndexStates(func(l *eventlog.Log) {
		t.WantEqual("all", []string{"a:6", "a:4", "a:3", "a:2", "a:1"}, t.hits(l, search.Query{Text: "needle"}))
		for _, session := range []string{"", "a"} {
			t.WantEqual("active", []string{"a:6", "a:3", "a:1"}, t.hits(l, search.Query{Text: "needle", Session: session, Active: true}))
		}
	})
}

func testSearchLimits(t *env) {
	for _, session := range []string{"a", "b", "c"} {
		for i := range 10 {
			t.Append(t.Main(), session, eventlog.Any(), userText("needle"), suite.NewEvent("other:kind", fmt.Sprintf(`"needle %d"`, i)))
		}
	}
	t.withIndexStates(func(l *eventlog.Log) {
		t.WantEqual("limited", []string{"c:20", "c:19", "c:18"}, t.hits(l, search.Query{Text: "needle", Limit: 3}))
		t.WantEqual("limited by session", []string{"c:20", "c:19", "b:20", "b:19", "a:20"}, t.hits(l, search.Query{Text: "needle", Limit: 5, PerSession: 2}))
		t.WantEqual("all", 60, len(t.hits(l, search.Query{Text: "needle"})))
		types := []event.Type{event.MessageAdded}
		t.WantEqual("by type", []string{"c:19", "b:19", "a:19"}, t.hits(l, search.Query{Text: "needle", Types: types, PerSession: 1}))
		t.WantEqual("by type alone", 30, len(t.hits(l, search.Query{Text: "needle", Types: types})))
		t.WantEqual("of another type", []string{}, t.hits(l, search.Query{Text: "needle", Types: []event.Type{event.HeadMoved}}))
	})
	var long []event.Event
	for range 1000 {
		long = append(long, userText("straw"), userText("needle"))
	}
	t.Append(t.Main(), "long", eventlog.New(), long...)
	t.withIndexStates(func(l *eventlog.Log) {
		t.WantEqual("all of a long session", 1000, len(t.hits(l, search.Query{Text: "needle", Session: "long"})))
		t.WantEqual("many of a long session", 700, len(t.hits(l, search.Query{Text: "needle", Session: "long", PerSession: 700})))
		t.WantEqual("many of each session", 730, len(t.hits(l, search.Query{Text: "needle", PerSession: 700, Active: true, Types: []event.Type{event.MessageAdded}})))
	})
}

func testSearchOrder(t *env) {
	sessions := []string{"m", "z", "a", "k"}
	for _, session := range sessions {
		t.Append(t.Main(), session, eventlog.New(), userText("needle"))
	}
	t.Append(t.Main(), "z", eventlog.Any(), userText("something else"))
	t.withIndexStates(func(l *eventlog.Log) {
		t.WantEqual("hits", []string{"z:1", "k:1", "a:1", "m:1"}, t.hits(l, search.Query{Text: "needle"}))
	})
}

func testSearchCanceled(t *env) {
	for i := range 200 {
		t.Append(t.Main(), fmt.Sprintf("s%d", i%7), eventlog.Any(), userText("needle"))
	}
	t.withIndexStates(func(l *eventlog.Log) {
		ctx, cancel := context.WithCancel(t.Ctx)
		n, last := 0, error(nil)
		for _, err := range search.Events(ctx, l, search.Query{Text: "needle"}) {
			if n++; n == 3 {
				cancel()
			}
			last = err
		}
		cancel()
		t.WantErr(context.Canceled, last)
		t.WantEqual("hits before the end", 4, n)
		for range search.Events(t.Ctx, l, search.Query{Text: "needle"}) {
			break
		}
	})
}
