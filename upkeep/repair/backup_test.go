package repair_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// whole is the session of storedPieces, as salvagedPieces writes it.
var whole = strings.Fields("1 2 3 4+1 5 6 7+2 8+1 9 10")

// Of a session with random damage and a backup of its beginning, each event of the backup and each readable event after
// it is there, at its seq and with its hash.
func TestRandomDamageWithABackup(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		store := &pieces{Store: memory.New()}
		log := eventlog.Open(store)
		was := storedPieces(t, log)
		end := []int{1, 2, 3, 5, 6, 9, 10}[random.IntN(7)]
		backup := backupOf(t, log, end)
		plan := damagedPlan(random)
		store.take(plan, was)
		into := eventlog.Open(memory.New())
		done, err := repair.Session(t.Context(), log, "s", repair.Options{Backup: backup, Into: into})
		if err != nil {
			t.Fatalf("%s with a backup up to %d: %v", plan, end, err)
		}
		if done.Action == repair.None {
			if words := strings.Fields(plan); len(words) < end {
				t.Errorf("%s is sound, and the backup ends at %d", plan, end)
			}
			continue
		}
		got := strings.Fields(salvagedPieces(t, into, done, was))
		if len(got) < end || !slices.Equal(got[:end], whole[:end]) {
			t.Errorf("%s with a backup up to %d becomes %q", plan, end, got)
		}
		as := func(word string) string { return strings.Split(word, "+")[0] }
		for _, word := range strings.Fields(plan) {
			torn := strings.Contains(plan, "~") || done.Torn.Bytes > 0
			if n := slices.IndexFunc(whole, func(w string) bool { return as(w) == word }); n >= end && !torn && (n >= len(got) || as(got[n]) != word) {
				t.Errorf("%s with a backup up to %d becomes %q without %s", plan, end, got, word)
			}
		}
		if lost := slices.Contains(got, "L"); end == 10 && (lost || done.Head != headOf(was, len(got))) && len(got) == 10 {
			t.Errorf("%s with a whole backup becomes %q with another hash", plan, got)
		}
	}
}

func headOf(was map[string]event.Event, n int) event.Head {
	e := was[fmt.Sprint(n)]
	return event.Head{Seq: e.Seq, Hash: e.Hash()}
}

// damagedPlan is a plan for take: the session with damage.
func damagedPlan(random *rand.Rand) string {
	var words []string
	for n := range 10 {
		switch random.IntN(8) {
		case 0:
			words = append(words, "!")
		case 1:
			words = append(words, fmt.Sprint("!", n+1))
		case 2:
		default:
			words = append(words, fmt.Sprint(n+1))
		}
	}
	if random.IntN(4) == 0 {
		i, j := random.IntN(len(words)+1), random.IntN(len(words)+1)
		words = slices.Insert(words, i, "x")
		words = words[:max(1, j)]
	}
	if random.IntN(4) == 0 {
		words = append(words, "~")
	}
	return strings.Join(words, " ")
}

// backupOf is a log with the first events of session s.
func backupOf(t *testing.T, log *eventlog.Log, end int) *eventlog.Log {
	t.Helper()
	return eventlog.Open(upTo{copyOf(t, log).Store(), int64(end)})
}

// copyOf is a log with the sessions of a log.
func copyOf(t *testing.T, log *eventlog.Log) *eventlog.Log {
	t.Helper()
	backup := eventlog.Open(memory.New())
	for _, err := range transfer.Convert(t.Context(), backup, log, transfer.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return backup
}

// upTo is a store whose sessions end early.
type upTo struct {
	eventlog.Store
	end int64
}

func (u upTo) Unwrap() eventlog.Store { return u.Store }

func (u upTo) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range u.Store.Read(ctx, session, r) {
			if err == nil && e.Seq > u.end || !yield(e, err) {
				return
			}
		}
	}
}

// A session in files has forks and a spilled body. With a backup, a repair in place gives it the same bytes again.
func TestABackupRepairsInPlace(t *testing.T) {
	dir := t.TempDir()
	log := eventlog.Open(jsonl.New(dir))
	body := strings.Repeat("a long text ", 100_000)
	for _, e := range []event.Event{event.UserMessage("one"), event.UserMessage(body), event.UserMessage("three"), event.UserMessage("four")} {
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fork.At(t.Context(), log, "s", fork.AtSeq(4), fork.Options{ID: "f"}); err != nil {
		t.Fatal(err)
	}
	backup := copyOf(t, log)
	if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage("five")); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "s.jsonl")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(good), "three", "thr33", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	log = eventlog.Open(jsonl.New(dir))
	defer log.Close()
	if _, err := repair.Session(t.Context(), log, "s", repair.Options{InPlace: true}); !errors.Is(err, eventlog.ErrInUse) {
		t.Fatalf("without a backup: %v", err)
	}
	done, err := repair.Session(t.Context(), log, "s", repair.Options{InPlace: true, Backup: backup})
	if err != nil || done.Copied != 2 || done.Kept != 3 || len(done.Lost)+len(done.Unmended) > 0 {
		t.Fatalf("%v, %+v", err, done)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(good) {
		t.Errorf("%v, %d bytes, were %d", err, len(now), len(good))
	}
	for _, session := range []string{"s", "f"} {
		if report, err := verify.Session(t.Context(), log, session); err != nil || len(report.Defects) > 0 {
			t.Errorf("%s: %v, %v", session, err, report.Defects)
		}
	}
	if done, err := repair.Session(t.Context(), log, "s", repair.Options{InPlace: true, Backup: backup}); err != nil || done.Action != repair.None {
		t.Errorf("again: %v, %s", err, done.Action)
	}
}

// What was erased in the session or in its backup does not come back.
func TestABackupBringsNothingErasedBack(t *testing.T) {
	for _, where := range []string{"session", "backup"} {
		t.Run(where, func(t *testing.T) {
			dir := t.TempDir()
			log := eventlog.Open(jsonl.New(dir))
			for _, text := range []string{"one", "secret", "three"} {
				if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage(text)); err != nil {
					t.Fatal(err)
				}
			}
			backup := copyOf(t, log)
			in, damaged := log, `"seq":2,`
			if where == "backup" {
				in, damaged = backup, `"seq":3,`
			}
			if _, err := erase.Redact(t.Context(), in, "s", []int64{2}, erase.RedactOptions{Reason: "asked"}); err != nil {
				t.Fatal(err)
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "s.jsonl")
			lines, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(lines), damaged) {
				t.Fatalf("no %s in %s", damaged, lines)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(lines), damaged, "#"+damaged[1:], 1)), 0o666); err != nil {
				t.Fatal(err)
			}
			log = eventlog.Open(jsonl.New(dir))
			defer log.Close()
			done, err := repair.Session(t.Context(), log, "s", repair.Options{InPlace: true, Backup: backup})
			if err != nil || done.Action != repair.Salvage {
				t.Fatalf("%v, %+v", err, done)
			}
			if lines, err = os.ReadFile(file); err != nil || strings.Contains(string(lines), "secret") || !strings.Contains(string(lines), "three") {
				t.Errorf("%v\n%s", err, lines)
			}
		})
	}
}

// A backup of another history is refused, and nothing is written.
func TestABackupOfAnotherHistory(t *testing.T) {
	store := &pieces{Store: memory.New()}
	log := eventlog.Open(store)
	was := storedPieces(t, log)
	other := eventlog.Open(memory.New())
	for _, text := range []string{"one", "two", "three"} {
		if _, err := other.Append(t.Context(), "s", eventlog.Any(), event.UserMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, plan := range []string{"1 ! 3", "! 2 3", "! ! ! 4 5"} {
		store.of = nil
		store.take(plan, was)
		_, err := repair.Session(t.Context(), log, "s", repair.Options{Backup: other})
		if !errors.Is(err, eventlog.ErrCorrupt) || !strings.Contains(err.Error(), "the backup has another event") {
			t.Errorf("%s: %v", plan, err)
		}
	}
	if _, err := log.Head(t.Context(), "s-salvaged"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("s-salvaged: %v", err)
	}
}
