package pi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/pi"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/upkeep/erase"
)

// original and copied are the files of a session and of its copy, which has one exchange of its own.
func original() string {
	return piHeader("orig", 0, "") + piExchange(1, "null") + piExchange(2, `"a1"`)
}

func copied() string {
	return piHeader("copy", 60, `,"parentSession":"/home/ada/2026_orig.jsonl"`) + piExchange(1, "null") + piExchange(2, `"a1"`) + piExchange(61, `"a2"`)
}

func piHeader(id string, minute int, more string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":"/w"%s}`+"\n", id, piTime(minute), more)
}

func piTime(minute int) string {
	return time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC).Format(time.RFC3339)
}

// piExchange is a request and an answer with n thousand tokens, n minutes after the start.
func piExchange(n int, parent string) string {
	return fmt.Sprintf(`{"type":"message","id":"u%d","parentId":%s,"timestamp":%q,"message":{"role":"user","content":"Question %d"}}`+"\n", n, parent, piTime(n), n) +
		fmt.Sprintf(`{"type":"message","id":"a%d","parentId":"u%d","timestamp":%q,"message":{"role":"assistant","content":[{"type":"text","text":"Answer %d"}],"usage":{"input":%d000,"output":1}}}`+"\n",
			n, n, piTime(n), n, n)
}

// A copy counts its own answers only, in whatever order the files are imported.
func TestCopyCountsOnce(t *testing.T) {
	for _, order := range [][]string{{""}, {"2026_orig.jsonl", "2026_copy.jsonl"}, {"2026_copy.jsonl", "2026_orig.jsonl"}} {
		t.Run(strings.Join(order, " "), func(t *testing.T) {
			dir, log := piFiles(t), importtest.NewLog(t)
			for _, name := range order {
				importtest.Files(t, log, pi.Format{}, filepath.Join(dir, name))
			}
			checkPiSums(t, log, dir, 64000, 3)
			if got := piTitle(t, log, "copy"); order[0] != "2026_copy.jsonl" && got != "Question 61" {
				t.Errorf("the title of the fork is %q", got)
			}
		})
	}
}

// The lines that a copy has from a removed session stay away, and the import says so.
func TestCopiesOfARemovedSessionStayAway(t *testing.T) {
	dir, log := piFiles(t), importtest.NewLog(t)
	importtest.Files(t, log, pi.Format{}, filepath.Join(dir, "2026_orig.jsonl"))
	if err := erase.Remove(t.Context(), log, "orig"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "2026_copy.jsonl"), dir} {
		got := importtest.Files(t, log, pi.Format{}, path)
		if len(got.LeftOut) != 1 || got.LeftOut[0] != "orig" {
			t.Errorf("left out %v", got.LeftOut)
		}
		checkPiSums(t, log, dir, 61000, 1)
		for _, m := range importtest.Messages(t, log, "copy") {
			if !strings.HasSuffix(m.Text(), " 61") {
				t.Errorf("the log has %q", m.Text())
			}
		}
	}
	if _, err := interop.Import(t.Context(), log, []interop.Format{pi.Format{}}, []string{dir}, interop.Options{Again: true}); err != nil {
		t.Fatal(err)
	}
	checkPiSums(t, log, dir, 64000, 3)
}

// A copy that is read at once equals a copy that grew. It may edit and repeat records of its
// original. It may begin after a summary: the tokens of the summary are in the same append. Text
// that was erased in the original stays away.
func TestACopyKnowsTheRecordsOfItsOriginal(t *testing.T) {
	summary := fmt.Sprintf(`{"type":"compaction","id":"s","parentId":"a2","timestamp":%q,"summary":"Short.","firstKeptEntryId":"u2","usage":{"input":3,"output":1}}`+"\n", piTime(3))
	edit := fmt.Sprintf(`{"type":"context_edit","id":"e","parentId":"s","timestamp":%q,"targetId":"u2","replacement":null}`+"\n", piTime(61))
	tail := fmt.Sprintf(`{"type":"compaction","id":"t","parentId":"e","timestamp":%q,"summary":"Shorter.","retainedTail":[{"role":"user","content":"Question 1"},{"role":"user","content":"Question 2"}]}`+"\n", piTime(62))
	before := original() + summary
	copied := piHeader("copy", 60, `,"parentSession":"/home/ada/2026_orig.jsonl"`) + strings.TrimPrefix(before, piHeader("orig", 0, "")) + edit + tail
	lines := slices.Collect(strings.Lines(copied))
	importtest.Lines{Format: pi.Format{}, Before: before}.Grows(t, lines, []int{len(lines) - 1})

	log := importtest.NewLog(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"2026_orig.jsonl": before, "2026_copy.jsonl": copied} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	importtest.Files(t, log, pi.Format{}, filepath.Join(dir, "2026_orig.jsonl"))
	if _, err := erase.Redact(t.Context(), log, "orig", []int64{2}); err != nil {
		t.Fatal(err)
	}
	importtest.Files(t, log, pi.Format{}, filepath.Join(dir, "2026_copy.jsonl"))
	kinds := map[event.Type]int{}
	for e, err := range log.Read(t.Context(), "copy", eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		kinds[e.Type]++
		if strings.Contains(string(e.Data), "Question 1") {
			t.Errorf("event %d has the erased text: %s", e.Seq, e.Data)
		}
	}
	if kinds[event.SessionForked] != 1 || kinds[event.CompactionTriggered] != 2 { // the last one has the erased text, and is withheld
		t.Errorf("%v", kinds)
	}
}

func piFiles(t *testing.T) (dir string) {
	dir = t.TempDir()
	for name, text := range map[string]string{"2026_orig.jsonl": original(), "2026_copy.jsonl": copied()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checkPiSums checks the sums of all sessions, and that another import adds nothing.
func checkPiSums(t *testing.T, log *eventlog.Log, dir string, tokens int64, exchanges int) {
	t.Helper()
	var all stats.Stats
	for _, id := range importtest.Sessions(t, log) {
		s, err := stats.Load(t.Context(), log, id)
		if err != nil {
			t.Fatal(err)
		}
		all.Add(s)
	}
	got := all.Total
	if got.Usage.InputTokens != tokens || got.Responses != exchanges || got.Turns != int64(exchanges) || got.Messages != int64(2*exchanges) {
		t.Errorf("%+v, want %d tokens and %d exchanges", got, tokens, exchanges)
	}
	if again := importtest.Files(t, log, pi.Format{}, dir); again.Events != 0 {
		t.Errorf("another import adds %d events", again.Events)
	}
	importtest.Verify(t, log)
}

func piTitle(t *testing.T, log *eventlog.Log, session string) string {
	t.Helper()
	info, err := projection.Load(t.Context(), log, session, projection.Info())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Title
}
