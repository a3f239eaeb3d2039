package replay_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/replay"
	"github.com/convlog/convlog/upkeep/transfer"
)

const golden = "../testdata/golden"

func goldenLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(golden, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
}

// A recorded session is replayed from its file, without a store.
func TestLinesOfARecordedSession(t *testing.T) {
	for name, want := range map[string]int{"basic.jsonl": 0, "batch.jsonl": 0, "numbers.jsonl": 0, "redacted.jsonl": 0, "unknown.jsonl": 0} {
		lines := goldenLines(t, name)
		want += len(lines)
		got := all(t, replay.Check(replay.Lines(strings.NewReader(strings.Join(lines, ""))), replay.Options{Whole: true}))
		if len(got) != want {
			t.Errorf("%s: %d events, want %d", name, len(got), want)
		}
	}
}

// A fork and its ancestors may stand one after the other, in any order.
func TestLineageOfGoldenForks(t *testing.T) {
	parent, child := goldenLines(t, "parent.jsonl"), goldenLines(t, "child.jsonl")
	text := slices.Concat(child, []string{"\n"}, parent, []string{"\r\n"}, goldenLines(t, "grandchild.jsonl"))
	got := all(t, replay.Lineage(replay.Lines(strings.NewReader(strings.Join(text, ""))), ""))
	last := got[len(got)-1]
	if last.SessionID != "grandchild" || int(last.Seq) != len(got) {
		t.Errorf("got %v", places(got))
	}
	for name, want := range map[string]error{"child": nil, "parent": nil, "stranger": eventlog.ErrNotFound} {
		_, err := failure(replay.Lineage(replay.Lines(strings.NewReader(strings.Join(text, ""))), name))
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := failure(replay.Lineage(replay.Lines(strings.NewReader(strings.Join(child, ""))), "")); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("a fork without its parent: %v", err)
	}
	if got := all(t, replay.Lineage(replay.Of(), "")); len(got) > 0 {
		t.Errorf("nothing has a lineage: %v", places(got))
	}
}

// Sessions that are forks of each other have no beginning.
func TestLineageRefusesACycle(t *testing.T) {
	fork := func(session, parent string) event.Event {
		return event.Event{Seq: 3, SessionID: session, Type: event.SessionForked,
			Data: jsontext.Value(`{"parent":"` + parent + `","seq":2}`)}
	}
	_, err := failure(replay.Lineage(replay.Of(fork("a", "b"), fork("b", "a")), ""))
	if !errors.Is(err, replay.ErrCycle) {
		t.Errorf("got %v, want %v", err, replay.ErrCycle)
	}
}

func TestLinesRefuse(t *testing.T) {
	basic, batch := goldenLines(t, "basic.jsonl"), goldenLines(t, "batch.jsonl")
	more := slices.IndexFunc(batch, func(line string) bool { return strings.Contains(line, `"more":`) })
	if more < 0 {
		t.Fatal("the golden log of a batch has none")
	}
	for _, c := range []struct {
		name  string
		text  string
		want  error
		where string
	}{
		{"a letter too many", basic[0] + strings.Replace(basic[1], `"type":"`, `"type":"x`, 1), eventlog.ErrCorrupt, "line 2: "},
		{"half a line", basic[0] + basic[1][:100], eventlog.ErrCorrupt, "line 2: "},
		{"no JSON", "\n\nhello\n", eventlog.ErrCorrupt, "line 3: "},
		{"a line of others", basic[0] + `{"role":"user"}`, event.ErrForeign, "line 2: "},
		{"a newer envelope", `{"crc":"00000000","v":2,"hash":"0"}`, event.ErrVersion, "line 1: "},
		{"an append without its end", strings.Join(batch[:more+1], ""), eventlog.ErrCorrupt, ""},
		{"an append that goes on as another", strings.Join(batch[:more+1], "") + basic[0], eventlog.ErrCorrupt, ""},
		{"data that is elsewhere", strings.Join(goldenLines(t, "spilled.jsonl"), ""), eventlog.ErrBlobNotFound, "line "},
	} {
		_, err := failure(replay.Lines(strings.NewReader(c.text)))
		if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), c.where) {
			t.Errorf("%s: got %v, want %v at %q", c.name, err, c.want, c.where)
		}
	}
	failing := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(basic[0])))
	if _, err := failure(replay.Lines(failing)); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a failing reader: %v", err)
	}
}

// An export has spilled data and blobs within; the events are as in the log.
func TestLinesOfAnExportWithBlobs(t *testing.T) {
	onEach(t, func(t *testing.T, log *eventlog.Log) {
		ctx := context.Background()
		body, err := log.PutBlob(ctx, strings.NewReader("a picture"))
		if err != nil {
			t.Fatal(err)
		}
		long := said(t, strings.Repeat("long ", 100<<10))
		image := event.New(event.Message{Role: event.User,
			Parts: []event.Part{event.Image("image/png", body)}})
		appended(t, log, "a", long, image)
		var text bytes.Buffer
		if err := transfer.Export(ctx, log, &text, "a"); err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, e := range all(t, log.Read(ctx, "a", eventlog.All())) {
			want = append(want, string(e.Data))
		}
		for _, e := range all(t, replay.Lineage(replay.Lines(&text), "a")) {
			got = append(got, string(e.Data))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
