package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/verify"
)

// damagedLog returns a store with session a, events 1–9, after an edit of its lines.
func damagedLog(t testing.TB, edit func(lines []string) []string) (dir string, l *eventlog.Log) {
	t.Helper()
	dir = t.TempDir()
	write(t, dir, "a", content(sealed(t, "a", 1, 1, 1, 1, 1, 1, 1, 2)))
	must(t, damager(dir)("a", edit))
	return dir, logOver(t, dir)
}

func logOver(t testing.TB, dir string, opts ...Options) *eventlog.Log {
	l := eventlog.Open(New(dir, opts...))
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func damageLine(line string) string { return strings.Replace(line, "note", "nose", 1) }

func readFile(t testing.TB, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	must(t, err)
	return string(b)
}

// Repair truncates a torn tail at once, and the next event names the cut.
func TestRepairTruncatesTornTail(t *testing.T) {
	for _, torn := range []string{"{", `{"crc":"0123`, strings.Repeat("\x00", 700)} {
		dir, l := damagedLog(t, func(lines []string) []string { return append(lines, torn) })
		before := readFile(t, dir, "a.jsonl")
		plan, err := repair.Session(t.Context(), l, "a", repair.Options{DryRun: true})
		must(t, err)
		size := int64(len(before) - len(torn))
		if plan.Action != repair.Cut || plan.Torn.Offset != size || plan.Torn.Bytes != int64(len(torn)) {
			t.Errorf("plan: %+v", plan)
		}
		if now := readFile(t, dir, "a.jsonl"); now != before {
			t.Error("planning changed the file")
		}
		done, err := repair.Session(t.Context(), l, "a", repair.Options{})
		must(t, err)
		saved := fmt.Sprintf("a.torn-%d", size)
		if done.Action != repair.Cut || done.Saved != filepath.Join(dir, saved) || readFile(t, dir, saved) != torn {
			t.Errorf("repair: %+v", done)
		}
		if now := readFile(t, dir, "a.jsonl"); now != before[:size] {
			t.Error("the lines before the torn tail changed")
		}
		_, err = l.Append(t.Context(), "a", eventlog.At(done.Head), note("next"))
		must(t, err)
		next, err := l.Event(t.Context(), "a", 10)
		must(t, err)
		if cut, ok := next.Cut(); !ok || cut.Bytes != int64(len(torn)) {
			t.Errorf("the next event names the cut %v", cut)
		}
	}
}

// A session that has only a torn tail no longer exists after repair.
func TestRepairTruncatesSessionWithoutAppend(t *testing.T) {
	dir, l := damagedLog(t, func([]string) []string { return []string{`{"crc":"01234567","v":1,`} })
	done, err := repair.Session(t.Context(), l, "a", repair.Options{})
	must(t, err)
	if done.Action != repair.Cut || readFile(t, dir, "a.torn-0") == "" {
		t.Errorf("repair: %+v", done)
	}
	_, err = l.Head(t.Context(), "a")
	wantErr(t, err, eventlog.ErrNotFound)
	_, err = l.Append(t.Context(), "a", eventlog.New(), note("first"))
	must(t, err)
}

// The last bytes decide whether acknowledged events may be lost.
func TestRepairOfTheEnd(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(lines []string) []string
		lost string // lost ranges
		last int64
		torn bool // some bytes are dropped
	}{
		{"the last line is bad", func(l []string) []string { l[8] = damageLine(l[8]); return l }, "9-9", 9, false},
		{"the last append is bad", func(l []string) []string { l[7], l[8] = damageLine(l[7]), damageLine(l[8]); return l }, "8-8 9-9", 9, false},
		{"damage, then an append that lacks its end", func(l []string) []string { l[3] = damageLine(l[3]); return l[:8] }, "4-4", 7, true},
		{"damage, then half a line", func(l []string) []string { l[3] = damageLine(l[3]); l[8] = l[8][:50]; return l }, "4-4", 7, true},
		{"damage, then a line that lacks its newline", func(l []string) []string {
			l[3] = damageLine(l[3])
			l[6] = strings.TrimSuffix(l[6], "\n")
			return l[:7]
		}, "4-4", 6, true},
		{"two lines on one", func(l []string) []string { l[4] = strings.TrimSuffix(l[4], "\n"); return l }, "", 9, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, l := damagedLog(t, test.edit)
			done, err := repair.Session(t.Context(), l, "a", repair.Options{})
			must(t, err)
			var lost []string
			for _, r := range done.Lost {
				lost = append(lost, fmt.Sprintf("%d-%d", r.From, r.To))
			}
			if got := strings.Join(lost, " "); got != test.lost || done.Head.Seq != test.last || done.Torn.Bytes > 0 != test.torn {
				t.Errorf("lost %q, last %d, torn %+v", got, done.Head.Seq, done.Torn)
			}
			report, err := verify.Session(t.Context(), l, done.As)
			must(t, err)
			if len(report.Defects) > 0 || report.Head != done.Head {
				t.Errorf("verify: %+v", report)
			}
		})
	}
}

// A repair loses a block that never reached the disk, and keeps the lines after it.
func TestRepairOfAHole(t *testing.T) {
	hit := int64(0)
	_, l := damagedLog(t, func(lines []string) []string {
		at := 0
		for i, line := range lines {
			if n := block - at%block; i > 1 && n < len(line)-1 {
				lines[i], hit = strings.Repeat("\x00", n)+line[n:], int64(i+1)
				break
			}
			at += len(line)
		}
		return lines
	})
	done, err := repair.Session(t.Context(), l, "a", repair.Options{})
	must(t, err)
	if len(done.Lost) != 1 || done.Lost[0].From != hit || done.Lost[0].To != hit || done.Kept != 8 {
		t.Errorf("line %d has a hole: %+v", hit, done)
	}
}

// A line of a newer version is not damage.
func TestRepairLeavesNewerVersionsAlone(t *testing.T) {
	dir, l := damagedLog(t, func(lines []string) []string {
		lines[2] = damageLine(lines[2])
		lines[5] = `{"v":2,"seq":6}` + "\n"
		return lines
	})
	_, err := repair.Session(t.Context(), l, "a", repair.Options{})
	wantErr(t, err, event.ErrVersion)
	if names := fileNames(t, dir); names != "a.jsonl" && names != ".lock a.jsonl" {
		t.Errorf("files: %s", names)
	}
}

// The backup copy has every byte, and is neither a session nor a torn tail. A redaction
// removes it.
func TestReplaceKeepsACopy(t *testing.T) {
	dir, l := damagedLog(t, func(lines []string) []string {
		lines[4] = damageLine(lines[4])
		return append(lines, "{")
	})
	must(t, os.WriteFile(filepath.Join(dir, "a.torn-99"), []byte("an older tail"), 0o600))
	before := readFile(t, dir, "a.jsonl")
	done, err := repair.Session(t.Context(), l, "a", repair.Options{InPlace: true})
	must(t, err)
	if done.Copy != filepath.Join(dir, "a.damaged-1") || readFile(t, dir, "a.damaged-1") != before {
		t.Errorf("copy at %q", done.Copy)
	}
	must(t, damager(dir)("a", func(lines []string) []string { lines[7] = damageLine(lines[7]); return lines }))
	again, err := repair.Session(t.Context(), l, "a", repair.Options{InPlace: true})
	must(t, err)
	if again.Copy != filepath.Join(dir, "a.damaged-2") {
		t.Errorf("copy at %q", again.Copy)
	}
	names := fileNames(t, dir)
	if !strings.HasPrefix(names, ".lock a.damaged-1 a.damaged-2 a.jsonl a.torn-99.") || strings.Contains(names, "tmp") {
		t.Errorf("files: %s", names)
	}
	for range verify.TornTails(t.Context(), l) {
		t.Error("a torn tail is listed")
	}
	for info, err := range l.Sessions(t.Context()) {
		if must(t, err); info.ID != "a" {
			t.Errorf("session %q is listed", info.ID)
		}
	}
	_, err = erase.Redact(t.Context(), l, "a", []int64{1}, erase.RedactOptions{Reason: "asked for"})
	must(t, err)
	if names := fileNames(t, dir); names != ".lock a.jsonl convlog%3astore.jsonl" {
		t.Errorf("files after a redaction: %s", names)
	}
}

// If the repair fails, the session is unchanged or fully repaired.
func TestReplaceFails(t *testing.T) {
	ops := []string{"write", "rename", "sync", "syncdir", "remove"}
	for after := range 12 {
		dir, plain := damagedLog(t, func(lines []string) []string { lines[4] = damageLine(lines[4]); return lines })
		before := readFile(t, dir, "a.jsonl")
		must(t, plain.Close())
		disk := newFaults(dir)
		l := logOver(t, dir, Options{FS: disk})
		n := 0
		disk.set(func(op, name string) error {
			if slices.Contains(ops, op) {
				if n++; n > after {
					return errNoSpace
				}
			}
			return nil
		})
		_, err := repair.Session(t.Context(), l, "a", repair.Options{InPlace: true})
		failed := err != nil
		disk.set(nil)
		if now := readFile(t, dir, "a.jsonl"); failed && now != before && !errors.Is(err, eventlog.ErrUnknownOutcome) {
			t.Fatalf("after %d operations: the file changed, and the error is %v", after, err)
		}
		done, err := repair.Session(t.Context(), l, "a", repair.Options{InPlace: true})
		must(t, err)
		report, err := verify.Session(t.Context(), l, "a")
		must(t, err)
		if len(report.Defects) > 0 || report.Head != done.Head || report.Events != 9 {
			t.Fatalf("after %d operations: %+v", after, report)
		}
		if !bytes.Contains([]byte(readFile(t, dir, "a.damaged-1")), []byte("nose")) {
			t.Fatalf("after %d operations: the copy differs from the file", after)
		}
	}
}

// Others append to a damaged session during its repair. No append is lost.
func TestRepairWhileOthersAppend(t *testing.T) {
	dir := t.TempDir()
	l := logOver(t, dir, Options{NoSync: true})
	big := strings.Repeat("x", 60<<10)
	stored, more := testsize.Pick(90, 90, 150), testsize.Pick(40, 70, 200)
	for i := range stored {
		_, err := l.Append(t.Context(), "a", eventlog.Any(), note(fmt.Sprint(i, big)))
		must(t, err)
	}
	must(t, l.Close())
	must(t, damager(dir)("a", func(lines []string) []string { lines[4] = lines[4][:20] + "?" + lines[4][21:]; return lines }))
	l, other := logOver(t, dir, Options{NoSync: true}), logOver(t, dir, Options{NoSync: true})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range more {
			if _, err := other.Append(t.Context(), "a", eventlog.Any(), note(fmt.Sprint("more ", i))); err != nil {
				t.Error(err)
			}
		}
	})
	salvaged, err := repair.Session(t.Context(), l, "a", repair.Options{})
	must(t, err)
	if salvaged.Kept < int64(stored-1) || len(salvaged.Lost) != 1 {
		t.Errorf("salvaged %+v", salvaged)
	}
	for {
		_, err := repair.Session(t.Context(), l, "a", repair.Options{InPlace: true})
		if err == nil {
			break
		}
		wantErr(t, err, eventlog.ErrConflict)
	}
	writing.Wait()
	report, err := verify.Session(t.Context(), l, "a")
	must(t, err)
	if len(report.Defects) > 0 || report.Events != int64(stored+more) {
		t.Errorf("verify: %+v", report)
	}
}
