package codex_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// content is what a log says, without salts, hashes and how appends were grouped.
type content struct {
	Seq            int64
	ID, Session    string
	Type           eventlog.Type
	At             time.Time
	Metadata, Data string
}

func contents(t *testing.T, log *eventlog.Log) (all []content) {
	t.Helper()
	for _, session := range sessions(t, log) {
		for e, err := range log.Read(t.Context(), session, eventlog.All) {
			if err != nil {
				t.Fatal(err)
			}
			if e.SessionID != session {
				continue
			}
			data := string(e.Data)
			if e.Type == eventlog.SessionForked { // it has a hash
				data = ""
			}
			all = append(all, content{e.Seq, e.ID.String(), session, e.Type, e.Timestamp, string(e.Metadata), data})
		}
	}
	return all
}

// growing are the files whose prefixes are imported, and what is in the log
// before; those of few bytes are cut behind every byte.
var growing = []struct {
	name, before string
	everyByte    bool
}{
	{"whole", "", false},
	{"rolled-back", "", false},
	{"compacted", "", false},
	{"summarised", "", false},
	{"parent", "", false},
	{"fork", "", false},
	{"fork", "parent", false},
	{"agent-forked", "", false},
	{"agent-forked", "parent", false},
	{"agent-fresh", "parent", false},
	{"bare", "", true},
	{"damaged", "", true},
}

func TestAFileThatGrowsGivesTheSameLog(t *testing.T) {
	for _, g := range growing {
		t.Run(g.name+" after "+g.before, func(t *testing.T) {
			text := readFixture(t, g.name)
			begin := func() *eventlog.Log {
				log := newLog(t)
				if g.before != "" {
					load(t, log, g.before)
				}
				return log
			}
			grown := func(log *eventlog.Log, parts ...string) []content {
				for _, part := range parts {
					if _, err := loadText(t, log, part); err != nil {
						t.Fatal(err)
					}
				}
				return contents(t, log)
			}
			want := grown(begin(), text)
			stepwise := begin()
			for _, cut := range cuts(text, g.everyByte) {
				grown(stepwise, text[:cut])
				same(t, fmt.Sprintf("the first %d bytes, then all", cut), want, grown(begin(), text[:cut], text))
			}
			same(t, "step by step", want, grown(stepwise, text))
		})
	}
}

// cuts are the ends of all lines and a place inside each, or every byte.
func cuts(text string, everyByte bool) (all []int) {
	if everyByte {
		for i := range text {
			all = append(all, i)
		}
		return all
	}
	at := 0
	for line := range strings.Lines(text) {
		all = append(all, at+len(line)/2, at+len(line))
		at += len(line)
	}
	return all
}

func TestAnotherHistoryIsAConflict(t *testing.T) {
	log := newLog(t)
	load(t, log, "rolled-back")
	before := contents(t, log)
	lines := strings.SplitAfter(readFixture(t, "rolled-back"), "\n")
	text := strings.Join(lines[:10], "") + strings.Replace(lines[10], "90", "91", 1)
	got, err := loadText(t, log, text)
	var history *interop.HistoryError
	if !errors.As(err, &history) || !errors.Is(err, interop.ErrHistory) || history.Line != 11 || history.Session != id("2") {
		t.Errorf("error is %v", err)
	}
	if got.Present != 10 || got.Events != 0 {
		t.Errorf("result is %+v", got)
	}
	same(t, "log", before, contents(t, log))
}

func TestASessionOfOthersIsAConflict(t *testing.T) {
	log := newLog(t)
	e, err := eventlog.NewUserMessage("mine")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), id("2"), eventlog.New, e); err != nil {
		t.Fatal(err)
	}
	if _, err := loadText(t, log, readFixture(t, "rolled-back")); !errors.Is(err, interop.ErrHistory) {
		t.Errorf("error is %v", err)
	}
}

func TestAShorterVersionAddsNothing(t *testing.T) {
	log := newLog(t)
	load(t, log, "whole")
	text := readFixture(t, "whole")
	got, err := loadText(t, log, text[:len(text)/2])
	if err != nil || got.Events != 0 || got.Present == 0 || len(got.Refused) != 1 {
		t.Errorf("import of the first half: %+v, %v", got, err)
	}
}

func TestGrowthBehindWhatOthersAppended(t *testing.T) {
	log := newLog(t)
	lines := strings.SplitAfter(readFixture(t, "rolled-back"), "\n")
	if _, err := loadText(t, log, strings.Join(lines[:11], "")); err != nil {
		t.Fatal(err)
	}
	e, err := eventlog.NewUserMessage("mine")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), id("2"), eventlog.Any, e); err != nil {
		t.Fatal(err)
	}
	if _, err := loadText(t, log, strings.Join(lines[:19], "")); err != nil {
		t.Fatal(err)
	}
	same(t, "active path", []string{
		"turn completed", "user mine", "turn_started", "user Name a river.", "assistant The Oder.", "step 0: 200+0 in, 5 out", "turn completed",
	}, drawn(t, log, id("2"))[8:])
}

// all is every fixture but the one that is damaged.
var all = []string{"whole", "rolled-back", "compacted", "summarised", "bare", "parent", "agent-fresh", "agent-forked", "fork"}

func TestOverEachStore(t *testing.T) {
	memory := newLog(t)
	load(t, memory, all...)
	want := contents(t, memory)
	for name, store := range map[string]eventlog.Store{
		"jsonl":  jsonl.New(t.TempDir()),
		"sqlite": sqlite.New(t.TempDir() + "/log.db"),
	} {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(store)
			defer log.Close()
			load(t, log, all...)
			same(t, "log", want, contents(t, log))
			table := load(t, log, all...)
			if total := table.Total(); total.Events != 0 || total.Present != total.Records {
				t.Errorf("second import: %+v", total)
			}
			verify(t, log)
		})
	}
}

// verify looks for damage and broken rules in every session.
func verify(t *testing.T, log *eventlog.Log) {
	t.Helper()
	for _, session := range sessions(t, log) {
		if report, err := log.Verify(t.Context(), session); err != nil || len(report.Defects) > 0 {
			t.Fatalf("verify %q: %v, %v", session, report.Defects, err)
		}
	}
}

func TestManyEventsAreAppendedInBatches(t *testing.T) {
	var text strings.Builder
	text.WriteString(strings.SplitAfter(readFixture(t, "rolled-back"), "\n")[0])
	for i := range 1000 {
		fmt.Fprintf(&text, `{"timestamp":"2026-02-03T11:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":"Go on, %d."}}`+"\n", i)
	}
	log := newLog(t)
	got, err := codex.Format{}.Import(t.Context(), log, source(text.String()))
	if err != nil || got.Events != 1001 {
		t.Fatalf("import: %+v, %v", got, err)
	}
}
