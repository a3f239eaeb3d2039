package transfer_test

import (
	"bytes"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

func goldenLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../testdata/golden", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
}

// imported imports lines into an empty log in memory.
func importLines(t *testing.T, lines ...string) (*eventlog.Log, []transfer.Result, error) {
	t.Helper()
	log := testkit.Open(t, memory.New())
	adopted, err := transfer.Import(t.Context(), log, strings.NewReader(strings.Join(lines, "")))
	return log, adopted, err
}

// The file of a session is an export of the session, if it needs no blobs.
func TestImportOfSessionFiles(t *testing.T) {
	for _, name := range []string{"basic.jsonl", "batch.jsonl", "numbers.jsonl", "redacted.jsonl", "unknown.jsonl"} {
		lines := goldenLines(t, name)
		log, adopted, err := importLines(t, lines...)
		if err != nil || len(adopted) != 1 {
			t.Errorf("%s: imported %v, %v", name, adopted, err)
			continue
		}
		if got := len(collect(t, log.Read(t.Context(), adopted[0].Session, eventlog.All()))); got != len(lines) {
			t.Errorf("%s: %d events, want %d", name, got, len(lines))
		}
	}
}

// Blank lines may separate the files of a lineage.
func TestImportOfForks(t *testing.T) {
	text := slices.Concat(goldenLines(t, "parent.jsonl"), []string{"\n"}, goldenLines(t, "child.jsonl"), []string{"\r\n"}, goldenLines(t, "grandchild.jsonl"))
	log, _, err := importLines(t, text...)
	if err != nil {
		t.Fatal(err)
	}
	got := collect(t, log.Read(t.Context(), "grandchild", eventlog.All()))
	if last := got[len(got)-1]; last.SessionID != "grandchild" || int(last.Seq) != len(got) {
		t.Errorf("the last of %d events is %d of %q", len(got), last.Seq, last.SessionID)
	}
}

func TestImportRefuses(t *testing.T) {
	basic, batch := goldenLines(t, "basic.jsonl"), goldenLines(t, "batch.jsonl")
	more := slices.IndexFunc(batch, func(line string) bool { return strings.Contains(line, `"more":`) })
	if more < 0 {
		t.Fatal("batch.jsonl holds no append of several events")
	}
	for _, c := range []struct {
		name  string
		text  string
		want  error
		where string
	}{
		{"a letter too many", basic[0] + strings.Replace(basic[1], `"type":"`, `"type":"x`, 1), eventlog.ErrCorrupt, "line 2 "},
		{"half a line", basic[0] + basic[1][:100], eventlog.ErrCorrupt, "line 2 "},
		{"no JSON", "\n\nhello\n", eventlog.ErrCorrupt, "line 3 "},
		{"a line of another program", basic[0] + `{"role":"user"}`, event.ErrForeign, "line 2: "},
		{"a newer envelope", `{"crc":"00000000","v":2,"hash":"0"}`, event.ErrVersion, "line 1: "},
		{"an append without its end", strings.Join(batch[:more+1], ""), eventlog.ErrCorrupt, "line "},
		{"an append that another interrupts", strings.Join(batch[:more+1], "") + basic[0], eventlog.ErrCorrupt, "line "},
		{"data in a blob that is missing", strings.Join(goldenLines(t, "spilled.jsonl"), ""), eventlog.ErrBlobNotFound, "line "},
		{"a fork before its parent", strings.Join(goldenLines(t, "child.jsonl"), ""), eventlog.ErrNotFound, "line 1: "},
	} {
		_, _, err := importLines(t, c.text)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.where) {
			t.Errorf("%s: got %v, want %v at %q", c.name, err, c.want, c.where)
		}
	}
}

func TestImportOfAFailingReader(t *testing.T) {
	failing := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(goldenLines(t, "basic.jsonl")[0])))
	if _, err := transfer.Import(t.Context(), testkit.Open(t, memory.New()), failing); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("got %v, want %v", err, iotest.ErrTimeout)
	}
}

// An export carries spilled data and blobs; the events read the same.
func TestExportCarriesBlobs(t *testing.T) {
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			src := testkit.Open(t, open(t.TempDir()))
			body, err := src.PutBlob(t.Context(), strings.NewReader("a picture"))
			if err != nil {
				t.Fatal(err)
			}
			image := event.New(event.Message{Role: event.User, Parts: []event.Part{event.Image("image/png", body)}})
			if _, err := src.Append(t.Context(), "a", eventlog.New(), event.UserMessage(strings.Repeat("long ", 100<<10)), image); err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := transfer.Export(t.Context(), src, &text, "a"); err != nil {
				t.Fatal(err)
			}
			dst, _, err := importLines(t, text.String())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(data(t, src, "a"), data(t, dst, "a")); diff != "" {
				t.Errorf("(-exported +imported):\n%s", diff)
			}
		})
	}
}

func data(t *testing.T, log *eventlog.Log, session string) (all []string) {
	t.Helper()
	for _, e := range collect(t, log.Read(t.Context(), session, eventlog.All())) {
		all = append(all, string(e.Data))
	}
	return all
}

func collect(t *testing.T, events iter.Seq2[event.Event, error]) []event.Event {
	t.Helper()
	all, err := testkit.Collect(events)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
