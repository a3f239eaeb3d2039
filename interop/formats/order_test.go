package formats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// Law: no history says that a call was interrupted while its path has the result, in any
// order of the lines of the file: whole, with two neighbors swapped, and with a line moved
// to the end.
func TestNoOrderInventsAnInterruption(t *testing.T) {
	for _, format := range formats.All() {
		for _, path := range lineFiles(t, format.Name()) {
			lines := strings.SplitAfter(strings.TrimRight(importtest.ReadFile(t, path), "\n")+"\n", "\n")
			lines = lines[:len(lines)-1]
			t.Run(format.Name()+"/"+filepath.Base(path), func(t *testing.T) {
				answered(t, format, "whole", lines)
				for i := 1; i < len(lines); i++ {
					if !testsize.Every(i-1, 4) {
						continue
					}
					swapped := slices.Clone(lines)
					swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
					answered(t, format, fmt.Sprintf("line %d after line %d", i, i+1), swapped)
					last := append(slices.Delete(slices.Clone(lines), i, i+1), lines[i])
					answered(t, format, fmt.Sprintf("line %d at the end", i+1), last)
				}
			})
		}
	}
}

// lineFiles are the transcripts of a format that have one record a line.
func lineFiles(t *testing.T, format string) (paths []string) {
	root := filepath.Join("..", "..", "testdata", "transcripts", format)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil && filepath.Ext(path) == ".jsonl" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// answered fails if a history of the import has an invented interruption.
func answered(t *testing.T, format interop.Format, order string, lines []string) {
	t.Helper()
	log := importtest.NewLog(t)
	_, err := format.Import(t.Context(), log, importtest.Source("f.jsonl", strings.Join(lines, "")))
	if err != nil {
		t.Logf("%s: %v", order, err) // for example, no header before the records
	}
	for _, id := range importtest.Sessions(t, log) {
		unused, history := resultsOn(t, log, id), importtest.History(t, log, id)
		for _, e := range history {
			if e.Message.Role == event.Tool && e.Made != "interrupted" {
				unused[e.Message.Parts[0].CallID]--
			}
		}
		for _, e := range history {
			if call := e.Message.Parts[0].CallID; e.Made == "interrupted" && unused[call] > 0 {
				t.Errorf("%s: session %s: call %s is interrupted, and has a result", order, id, call)
			}
		}
	}
}

// resultsOn counts the results of each call on the active path, after the newest compaction.
func resultsOn(t *testing.T, log *eventlog.Log, session string) map[string]int {
	results := map[string]int{}
	for _, e := range importtest.ActivePath(t, log, session) {
		if e.Type == event.CompactionTriggered {
			clear(results)
		}
		m, ok, err := event.Decode[event.Message](&e)
		if !ok || err != nil {
			continue
		}
		for _, r := range m.ToolResults() {
			results[r.CallID]++
		}
	}
	return results
}
