package codex_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/internal/records"
)

// growingFiles are files to import prefix by prefix, with the files to import before
// them. Small files are cut after every byte.
var growingFiles = []struct {
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

func TestGrowingFileGivesTheSameLog(t *testing.T) {
	for _, g := range growingFiles {
		t.Run(g.name+" after "+g.before, func(t *testing.T) {
			text := readFixture(t, g.name)
			lines := importtest.Lines{Format: codex.Format{}}
			if g.before != "" {
				lines.Before = readFixture(t, g.before)
			}
			lines.GrowsByBytes(t, text, cuts(text, g.everyByte))
		})
	}
}

// cuts returns the ends of all lines and a position inside each, or every byte.
func cuts(text string, everyByte bool) (all []int) {
	if everyByte {
		for i := range text {
			all = append(all, i)
		}
		return all
	}
	return importtest.Cuts(text)
}

func TestAnotherHistoryIsAConflict(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "rolled-back")
	before := importtest.Contents(t, log)
	lines := strings.SplitAfter(readFixture(t, "rolled-back"), "\n")
	text := strings.Join(lines[:10], "") + strings.Replace(lines[10], "90", "91", 1)
	got, err := loadText(t, log, text)
	var history *records.HistoryError
	if !errors.As(err, &history) || !errors.Is(err, interop.ErrHistory) || history.Line != 11 || history.Session != id("2") {
		t.Errorf("error is %v", err)
	}
	if got.Present != 10 || got.Events != 0 {
		t.Errorf("result is %+v", got)
	}
	importtest.Same(t, "log", before, importtest.Contents(t, log))
}

func TestSessionOfAnotherProgramIsAConflict(t *testing.T) {
	log := importtest.NewLog(t)
	importtest.Say(t, log, id("2"), event.Message{Role: event.User, Parts: []event.Part{event.Text("mine")}})
	if _, err := loadText(t, log, readFixture(t, "rolled-back")); !errors.Is(err, interop.ErrHistory) {
		t.Errorf("error is %v", err)
	}
}

func TestAShorterVersionAddsNothing(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "whole")
	text := readFixture(t, "whole")
	got, err := loadText(t, log, text[:len(text)/2])
	if err != nil || got.Events != 0 || got.Present == 0 || len(got.Rejected) != 1 {
		t.Errorf("import of the first half: %+v, %v", got, err)
	}
}

func TestGrowthAfterAnotherWriter(t *testing.T) {
	log := importtest.NewLog(t)
	lines := strings.SplitAfter(readFixture(t, "rolled-back"), "\n")
	if _, err := loadText(t, log, strings.Join(lines[:11], "")); err != nil {
		t.Fatal(err)
	}
	importtest.Say(t, log, id("2"), event.Message{Role: event.User, Parts: []event.Part{event.Text("mine")}})
	if _, err := loadText(t, log, strings.Join(lines[:19], "")); err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "active path", []string{
		"turn completed", "user mine", "turn_started", "user Name a river.", "assistant The Oder.", "step 0: 200+0 in, 5 out", "turn completed",
	}, outline(t, log, id("2"))[8:])
}

// all lists the fixtures except the damaged one.
var all = []string{"whole", "rolled-back", "compacted", "summarised", "bare", "parent", "agent-fresh", "agent-forked", "fork"}

func TestManyEventsAreAppendedInBatches(t *testing.T) {
	var text strings.Builder
	text.WriteString(strings.SplitAfter(readFixture(t, "rolled-back"), "\n")[0])
	for i := range 1000 {
		fmt.Fprintf(&text, `{"timestamp":"2026-02-03T11:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":"Go on, %d."}}`+"\n", i)
	}
	log := importtest.NewLog(t)
	got, err := codex.Format{}.Import(t.Context(), log, importtest.Source("f", text.String()))
	if err != nil || got.Events != 1001 {
		t.Fatalf("import: %+v, %v", got, err)
	}
}
