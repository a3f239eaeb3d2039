package document_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/upkeep/erase"
)

// notes is a format for these tests: a list of items in their order.
type notes struct{}

func (notes) Name() string                   { return "notes" }
func (notes) Detect(_ string, _ []byte) bool { return true }

func (notes) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	return document.Import(ctx, log, src, "notes", read)
}

// note is an item of the format.
type note struct {
	Name  string `json:"name,omitzero"`
	After string `json:"after,omitzero"`
	Text  string `json:"text,omitzero"` // none: kept raw
	Cost  int64  `json:"cost,omitzero"`
	At    int64  `json:"at,omitzero"` // seconds
	Late  bool   `json:"late,omitzero"`
	Raw   string `json:"raw,omitzero"` // ignored
	// Forgets are names of notes that this one replaces, as their summary.
	Forgets []string `json:"forgets,omitzero"`
}

func read(_ *document.File, rec *records.Record) ([]document.Session, error) {
	records, err := document.Elements(rec, rec.Value)
	if err != nil {
		return nil, err
	}
	s := document.Session{ID: "s", Rec: rec, About: event.Session{Title: "Notes"}}
	for i := range records {
		var n note
		if err := json.Unmarshal(records[i].Value, &n); err != nil {
			return nil, err
		}
		it := document.Raw(records[i], "raw")
		it.Name, it.After, it.Late = n.Name, n.After, n.Late
		if n.At > 0 {
			it.At = time.Unix(n.At, 0).UTC()
		}
		if n.Text != "" && n.Forgets != nil {
			it.Payload, it.Forgets = event.Compaction{Summary: n.Text}, n.Forgets
		} else if n.Text != "" {
			it.Payload = event.Message{Role: event.User, Parts: []event.Part{event.Text(n.Text)}}
		}
		s.Totals.Cost += event.Cost(n.Cost)
		s.Items = append(s.Items, it)
	}
	return []document.Session{s}, nil
}

func write(t importtest.TB, all []note) string {
	t.Helper()
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// anyNotes are notes with names and without, on branches and raw.
func anyNotes(r *rapid.T) (all []note) {
	for i := range rapid.IntRange(1, 14).Draw(r, "notes") {
		n := note{Text: rapid.SampledFrom([]string{"", "a", "b", "a"}).Draw(r, "text")}
		if rapid.Bool().Draw(r, "named") {
			n.Name = fmt.Sprint("n", i)
		}
		if n.Name != "" && rapid.IntRange(0, 3).Draw(r, "compacts") == 0 {
			n.Forgets = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) string {
				return fmt.Sprint("n", rapid.IntRange(0, i).Draw(r, "forgotten"))
			}), 1, 4).Draw(r, "forgets")
		}
		if rapid.IntRange(0, 3).Draw(r, "branch") == 0 {
			n.After = fmt.Sprint("n", rapid.IntRange(0, i).Draw(r, "after"))
		}
		all = append(all, n)
	}
	return all
}

// Law: a document that is imported while it grows gives the same log as the whole
// document, and a second import adds nothing.
func TestAnyDocumentThatGrowsGivesTheSameLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		all := anyNotes(r)
		var versions []string
		for cut := 1; cut < len(all); cut += rapid.IntRange(1, 4).Draw(r, "grows by") {
			versions = append(versions, write(r, all[:cut]))
		}
		importtest.Grows(r, notes{}, "f", append(versions, write(r, all))...)
	})
}

// Law: the cost that single items do not account for is added once, however often
// the document grows.
func TestCostsAreToldOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log := importtest.NewLog(r)
		var all []note
		var want event.Cost
		for range rapid.IntRange(1, 6).Draw(r, "notes") {
			n := note{Text: "a", Cost: int64(rapid.IntRange(0, 3).Draw(r, "cost"))}
			all, want = append(all, n), want+event.Cost(n.Cost)
			importtest.Load(r, log, notes{}, "f", write(r, all))
		}
		var got event.Cost
		for _, e := range importtest.Events(r, log, "s") {
			got += e.Cost
		}
		if got != want {
			r.Fatalf("it cost %v, not %v", got, want)
		}
	})
}

// A compaction replaces the items that it names and the items of a compaction among
// them. The items between stay in the history.
func TestItemsThatAreForgotten(t *testing.T) {
	log := importtest.NewLog(t)
	text := write(t, []note{
		{Name: "a", Text: "a"}, {Name: "b", Text: "b"}, {Name: "c", Text: "c"}, {Name: "d", Text: "d"},
		{Name: "first", Text: "b and d", Forgets: []string{"b", "d", "nobody"}}, {Name: "e", Text: "e"},
		{Name: "second", Text: "all but c", Forgets: []string{"first", "e"}}, {Name: "third", Text: "nothing", Forgets: []string{"nobody"}}, {Name: "f", Text: "f"},
	})
	got := importtest.Load(t, log, notes{}, "f", text)
	importtest.Again(t, log, notes{}, "f", text)
	if got.Raw != 1 {
		t.Errorf("import: %+v", got)
	}
	var said []string
	for _, e := range importtest.History(t, log, "s") {
		said = append(said, e.Message.Text())
	}
	importtest.Same(t, "history", []string{"a", "all but c", "c", "f"}, said)
	c, _, err := event.Decode[event.Compaction](&importtest.Events(t, log, "s")[7])
	if err != nil || c.Covers != (event.Stretch{From: 3, To: 7}) {
		t.Errorf("the second compaction is %+v, %v", c, err)
	}
}

// A session has the time of its first item with a time. An event after the items has
// the time of the last item with one. The time of the file does not matter.
func TestWhatHasNoTimeIsOfTheItemBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.json")
	text := write(t, []note{{Text: "a"}, {Text: "b", At: 100}, {Text: "c"}, {Text: "d", At: 300, Cost: 5}, {Text: "e"}})
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := importtest.NewLog(t)
	importtest.Files(t, log, notes{}, path)
	var times []int64
	for _, e := range importtest.Events(t, log, "s")[2:] {
		times = append(times, e.Timestamp.Unix())
	}
	importtest.Same(t, "times", []int64{100, 100, 300, 300, 300}, times)
	if start := importtest.Events(t, log, "s")[0]; start.Timestamp.Unix() != 100 {
		t.Errorf("it began at %v", start.Timestamp)
	}
}

// A list that differs from the log becomes another branch; a list that the log has
// does not move the head.
func TestALogOfTwoLists(t *testing.T) {
	log := importtest.NewLog(t)
	one, other := write(t, []note{{Text: "a"}, {Text: "b"}, {Text: "c"}}), write(t, []note{{Text: "a"}, {Text: "d"}})
	for _, text := range []string{one, other, one} {
		importtest.Load(t, log, notes{}, "f", text)
	}
	importtest.Same(t, "log", []string{"session_started", "user a…", "user b…", "user c…", "head_moved to 2", "user d…"}, lines(t, log))
}

// The next item follows a late item; an item of another branch does not.
func TestWhatComesLate(t *testing.T) {
	log := importtest.NewLog(t)
	a, b, late := note{Name: "a", Text: "a"}, note{Name: "b", Text: "b"}, note{Name: "late", Text: "late", Late: true}
	for _, all := range [][]note{
		{a, b}, {a, late, b}, {a, late, b, {Name: "c", Text: "c"}}, {a, {Name: "d", Text: "d"}},
	} {
		importtest.Load(t, log, notes{}, "f", write(t, all))
		importtest.Again(t, log, notes{}, "f", write(t, all))
	}
	importtest.Same(t, "log", []string{
		"session_started", "user a…", "user b…", "user late…", "user c…", "head_moved to 2", "user d…",
	}, lines(t, log))
}

// A second import does not bring redacted events back.
func TestRedactedItemsStayAway(t *testing.T) {
	log := importtest.NewLog(t)
	text := write(t, []note{{Text: "a"}, {Name: "n", Text: "b"}, {Text: "c", Cost: 7}})
	importtest.Load(t, log, notes{}, "f", text)
	if _, err := erase.Redact(t.Context(), log, "s", []int64{1, 2, 3, 4, 5}, erase.RedactOptions{Reason: "secret"}); err != nil {
		t.Fatal(err)
	}
	importtest.Again(t, log, notes{}, "f", text)
}

// A title that the user gave to the session stays.
func TestANewTitleStays(t *testing.T) {
	log := importtest.NewLog(t)
	text := write(t, []note{{Text: "a"}})
	importtest.Load(t, log, notes{}, "f", text)
	renamed := event.New(event.Session{Updated: true, Title: "Mine"})
	if _, err := log.Append(t.Context(), "s", eventlog.Any(), renamed); err != nil {
		t.Fatal(err)
	}
	importtest.Again(t, log, notes{}, "f", text)
}

// An import does not change a session of another origin.
func TestAnotherHistory(t *testing.T) {
	log := importtest.NewLog(t)
	e := event.UserMessage("mine")
	if _, err := log.Append(t.Context(), "s", eventlog.New(), e); err != nil {
		t.Fatal(err)
	}
	_, err := notes{}.Import(t.Context(), log, importtest.Source("f", `[{"text":"a"}]`))
	if err == nil || !strings.Contains(err.Error(), "another history under the same session id") || len(lines(t, log)) != 1 {
		t.Errorf("import: %v", err)
	}
}

func lines(t *testing.T, log *eventlog.Log) (all []string) {
	t.Helper()
	for _, e := range importtest.Events(t, log, "s") {
		all = append(all, importtest.Draw(t, &e))
	}
	return all
}

// Law: whatever is redacted, an import of the same document, of an earlier or of a longer
// version writes nothing of the redacted items. No two items are equal: of equal items
// around a redacted one, one may be stored too often.
func TestNothingOfAnyDocumentComesBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log, all := importtest.NewLog(r), anyNotes(r)
		for i := range all {
			word := &all[i].Text
			if *word == "" {
				word = &all[i].Raw
			}
			*word = fmt.Sprint("word", i, ".")
		}
		cut := rapid.IntRange(1, len(all)).Draw(r, "imported before")
		importtest.Load(r, log, notes{}, "f", write(r, all[:cut]))
		importtest.Redact(r, log, func(e *event.Event) bool { return rapid.Bool().Draw(r, "redacted") })
		before := importtest.Remains(r, log)
		importtest.Again(r, log, notes{}, "f", write(r, all[:cut]))
		importtest.Again(r, log, notes{}, "f", write(r, all[:rapid.IntRange(1, cut).Draw(r, "shorter")]))
		importtest.Same(r, "the same document again", before, importtest.Remains(r, log))
		importtest.Load(r, log, notes{}, "f", write(r, all))
		importtest.Again(r, log, notes{}, "f", write(r, all))
		after := importtest.Remains(r, log)
		for i := range all[:cut] {
			if word := fmt.Sprint("word", i, "."); importtest.Says(after, word) && !importtest.Says(before, word) {
				r.Fatalf("%s is back", word)
			}
		}
	})
}

// A new item that may be a redacted one stops the import of its session: the document has
// changed before the redacted item, beside it, or right after it.
func TestItemsThatMayBeRedactedOnes(t *testing.T) {
	a, b, c, d := note{Text: "a"}, note{Text: "b"}, note{Text: "c"}, note{Text: "d"}
	for name, after := range map[string][]note{
		"added before all":       {d, a, b, c},
		"added right before":     {a, d, b, c},
		"two added right before": {a, d, {Text: "e"}, b, c},
		"edited before":          {d, b, c},
		"moved after":            {a, c, b},
		"edited after":           {a, b, d},
		"without it":             {a, c, d},
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			importtest.Load(t, log, notes{}, "f", write(t, []note{a, b, c}))
			if _, err := erase.Redact(t.Context(), log, "s", []int64{3}); err != nil {
				t.Fatal(err)
			}
			before := importtest.Remains(t, log)
			_, err := notes{}.Import(t.Context(), log, importtest.Source("f", write(t, after)))
			if !errors.Is(err, interop.ErrErased) {
				t.Errorf("the import: %v", err)
			}
			importtest.Same(t, "after the import", before, importtest.Remains(t, log))
		})
	}
}

// Equal items around a redacted one, and items that the document dropped, are told apart
// by the items after them.
func TestRedactedItemsAmongEqualOnes(t *testing.T) {
	a, b, c, d := note{Text: "a"}, note{Text: "b"}, note{Text: "c"}, note{Text: "d"}
	for name, test := range map[string]struct {
		before []note
		redact []int64
		after  []note
		want   int // events
	}{
		"the first of two":          {[]note{a, a, b}, []int64{2}, []note{a, a, b}, 0},
		"the second of two":         {[]note{a, a, b}, []int64{3}, []note{a, a, b}, 0},
		"three before an equal one": {[]note{a, b, c, a, d}, []int64{2, 3, 4}, []note{a, b, c, a, d}, 0},
		"all":                       {[]note{a, b, a}, []int64{2, 3, 4}, []note{a, b, a}, 0},
		"dropped":                   {[]note{a, b, c, d}, []int64{3}, []note{a, c, d}, 0},
		"two dropped":               {[]note{a, b, c, d, a}, []int64{3, 4}, []note{a, d, a}, 0},
		"grown":                     {[]note{a, b}, []int64{2, 3}, []note{a, b, c}, 1},
		"another branch":            {[]note{a, b, c, d}, []int64{3}, []note{a, b, c, a}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			importtest.Load(t, log, notes{}, "f", write(t, test.before))
			if _, err := erase.Redact(t.Context(), log, "s", test.redact); err != nil {
				t.Fatal(err)
			}
			if got := importtest.Load(t, log, notes{}, "f", write(t, test.after)); got.Events != test.want {
				t.Errorf("import: %+v", got)
			}
			importtest.Again(t, log, notes{}, "f", write(t, test.after))
		})
	}
}
