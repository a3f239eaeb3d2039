//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

const (
	mebi = 1 << 20
	// baseMemory is the memory of a command without a long line.
	baseMemory = 40 * mebi
)

// peak runs logtool and returns the most memory that it had, in bytes. A small process
// starts logtool: Linux counts the memory of the process that starts another one.
func peak(t *testing.T, limit int, wantExit int, args ...string) (most int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "logtool-peak", args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", limit))
	var out bytes.Buffer
	cmd.Stderr = &out
	text, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != wantExit {
		t.Fatalf("logtool %v: exit code %d, %v: %s", args, code, err, out.String())
	}
	if _, err := fmt.Sscan(string(text), &most); err != nil {
		t.Fatal(err)
	}
	return most
}

// printPeak runs logtool with the arguments, and prints the most memory that it had.
func printPeak() {
	cmd := exec.Command("logtool", os.Args[1:]...)
	cmd.Stderr = os.Stderr
	_ = cmd.Run() // the exit code is checked
	fmt.Println(int(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * maxrssUnit)
	os.Exit(cmd.ProcessState.ExitCode())
}

// wantPeak checks the memory of a command.
func wantPeak(t *testing.T, most, limit, wantExit int, args ...string) {
	t.Helper()
	if got := peak(t, limit, wantExit, args...); got > most*raceFactor {
		t.Errorf("logtool %s: %d MiB, want at most %d MiB", strings.Join(args, " "), got/mebi, most*raceFactor/mebi)
	}
}

// An import needs up to six times the memory of the longest record, a page for people
// five times; verifying the event and exporting it for programs three times; a search
// four times, and showing it six times.
func TestMemoryOfALongRecord(t *testing.T) {
	const size = 24 * mebi
	dir := t.TempDir()
	file := filepath.Join(dir, "long.jsonl")
	writeTranscript(t, file, size)
	for _, store := range []string{filepath.Join(dir, "store"), filepath.Join(dir, "s.db")} {
		wantPeak(t, 6*size+baseMemory, size, 0, "--store", store, "import", file)
		wantPeak(t, 3*size+baseMemory, size, 0, "--store", store, "verify")
		wantPeak(t, 4*size+baseMemory, size, 1, "--store", store, "search", "zebra")
		wantPeak(t, 6*size+baseMemory, size, 0, "--store", store, "show", "a")
		for format, times := range map[string]int{"jsonl": 3, "openai": 3, "markdown": 5} {
			wantPeak(t, times*size+baseMemory, size, 0, "--store", store, "export", "a", "--format", format, "-o", filepath.Join(dir, "out"))
		}
	}
}

// writeTranscript writes a session with a message of size bytes between two short ones.
func writeTranscript(t *testing.T, path string, size int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	parent := "null"
	for i, length := range []int{6, size, 6} {
		id := fmt.Sprintf(`"0000000%d-0000-4000-8000-000000000000"`, i)
		fmt.Fprintf(w, `{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/x","sessionId":"a","version":"1.0.0","type":"user",`+
			`"message":{"role":"user","content":"`, parent)
		writeLong(w, length)
		fmt.Fprintf(w, `"},"uuid":%s,"timestamp":"2026-01-01T00:00:0%d.000Z"}`+"\n", id, i)
		parent = id
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// writeLong writes a long text. The memory of the test must stay small: the system counts
// it as the memory of the commands that the test starts.
func writeLong(w *bufio.Writer, size int) {
	for range size / 6 {
		_, _ = w.WriteString("ab cd ") // Flush returns the error
	}
}

// A line that no append can have written is damage, and needs no memory.
func TestMemoryOfADamagedLine(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	file := filepath.Join(dir, "short.jsonl")
	writeTranscript(t, file, 60)
	peak(t, 32*mebi, 0, "--store", store, "import", file)
	session := filepath.Join(store, "a.jsonl")
	lines, err := os.ReadFile(session)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(lines, '\n') + 1
	f, err := os.Create(session)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	_, _ = w.Write(lines[:first])
	writeLong(w, 128*mebi)
	_, _ = w.Write(append([]byte{'\n'}, lines[first:]...))
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		exit int
		args string
	}{
		{1, "ls"}, {1, "show a"}, {1, "verify"}, {1, "export a --format jsonl"}, {0, "store repair a --as b"}, {0, "show b"},
	} {
		wantPeak(t, 2*baseMemory, 32*mebi, test.exit, append([]string{"--store", store}, strings.Fields(test.args)...)...)
	}
	out, err := exec.CommandContext(t.Context(), "logtool", "--store", store, "verify", "a").Output()
	if want := fmt.Sprintf("%s byte %d", session, first); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("verify does not name %q: %s", want, out)
	}
}

// The export and the import of a tree need memory for the largest session, however many
// sessions there are.
func TestMemoryOfATree(t *testing.T) {
	const sessions, messages, length = 160, 32, 32 << 10 // 160 MiB
	dir := t.TempDir()
	store, file := filepath.Join(dir, "store"), filepath.Join(dir, "tree.jsonl")
	log := eventlog.Open(jsonl.New(store, jsonl.Options{Sync: jsonl.Never}))
	text := strings.Repeat("ab cd ", length/6)
	for i := range sessions {
		start := event.Session{Title: text}
		if i > 0 {
			start.Parent.SessionID = fmt.Sprint("s", i/2)
		}
		events := []event.Event{event.New(start)}
		for range messages {
			events = append(events, event.UserMessage(text))
		}
		if _, err := log.Append(t.Context(), fmt.Sprint("s", i), eventlog.New(), events...); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	// On a busy machine half of the memory may be garbage.
	wantPeak(t, 2*(baseMemory+8*messages*length), 16*mebi, 0, "--store", store, "export", "--below", "s0", "-o", file)
	if info, err := os.Stat(file); err != nil || info.Size() < sessions*messages*length {
		t.Fatal(info, err)
	}
	for _, to := range []string{"copy", "copy.db"} {
		wantPeak(t, 2*(baseMemory+8*messages*length), 32*mebi, 0, "--store", filepath.Join(dir, to), "import", file)
	}
}

// A command over all sessions holds some hundred bytes of each, with and without a catalog.
func TestMemoryOfManySessions(t *testing.T) {
	const sessions = 6_000
	dir := t.TempDir()
	for path, store := range map[string]eventlog.Store{
		filepath.Join(dir, "store"): jsonl.New(filepath.Join(dir, "store"), jsonl.Options{Sync: jsonl.Never}),
		filepath.Join(dir, "s.db"):  sqlite.New(filepath.Join(dir, "s.db"), sqlite.Options{Sync: sqlite.Never}),
	} {
		log := eventlog.Open(store)
		for i := range sessions {
			start := event.Session{Title: fmt.Sprint("a title of some words, number ", i), CWD: "/home/ada/birdlog", Agent: "agent"}
			if _, err := log.Append(t.Context(), fmt.Sprintf("0190a5a4-7d4c-7000-8000-%012d", i), eventlog.New(), event.New(start), event.UserMessage("hello")); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		for _, args := range []string{"ls", "ls --long", "stats", "cost", "tree"} {
			wantPeak(t, baseMemory+28*mebi, 20*mebi, 0, append([]string{"--store", path}, strings.Fields(args)...)...)
		}
	}
}
