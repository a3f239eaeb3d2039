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
	"github.com/convlog/convlog/internal/pages"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

const (
	kibi = 1 << 10
	mebi = 1 << 20
	// memoryNoise is twice what the memory of a command varies, if it does not depend on
	// the data.
	memoryNoise = 24 * mebi
)

// growing is two folders with the same files. One folder has more data.
type growing struct{ less, more string }

// newGrowing fills two folders with less and more items.
func newGrowing(t *testing.T, less, more int, fill func(t *testing.T, dir string, items int)) growing {
	t.Helper()
	g := growing{t.TempDir(), t.TempDir()}
	fill(t, g.less, less)
	fill(t, g.more, more)
	return g
}

// want checks that a command needs at most that many bytes more in the folder with more
// data.
func (g growing) want(t *testing.T, most, wantExit int, command string) {
	t.Helper()
	less, more := peak(t, g.less, wantExit, command), peak(t, g.more, wantExit, command)
	if got := more - less; got > (most+memoryNoise)*raceFactor {
		t.Errorf("logtool %s: %d KiB with less data, %d KiB with more, want at most %d KiB more", command, less/kibi, more/kibi, (most+memoryNoise)*raceFactor/kibi)
	}
}

// run runs a command in both folders.
func (g growing) run(t *testing.T, command string) {
	t.Helper()
	peak(t, g.less, 0, command)
	peak(t, g.more, 0, command)
}

// peak runs logtool in a folder, and returns the most memory that it had, in bytes. A small
// process starts logtool: Linux counts the memory of the process that starts another one.
// logtool stops for its garbage collections, so its memory does not depend on its speed.
func peak(t *testing.T, dir string, wantExit int, command string) (most int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "logtool-peak", strings.Fields(command)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=off", fmt.Sprint("GOGC=", testsize.Pick(50, 50, 25)), "GODEBUG=gcstoptheworld=1", "GOMAXPROCS=2")
	var out bytes.Buffer
	cmd.Stderr = &out
	text, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != wantExit {
		t.Fatalf("logtool %s: exit code %d, %v: %s", command, code, err, out.String())
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

// Importing or showing a long record, and a page for people, need about six times its
// memory, a search four times, and an export for programs three times. Verifying it needs
// little more than its length. The test allows twice as much.
func TestMemoryOfALongRecord(t *testing.T) {
	t.Parallel()
	size := testsize.Pick(2, 3, 24) * mebi
	g := newGrowing(t, size/4, size, func(t *testing.T, dir string, size int) {
		writeTranscript(t, filepath.Join(dir, "long.jsonl"), size)
	})
	for _, store := range []string{"store", "s.db"} {
		for i, test := range []struct {
			times, exit int
			command     string
		}{
			{6, 0, "import long.jsonl"}, {3, 0, "export a --format jsonl -o out"}, {4, 1, "search zebra"}, {3, 0, "export a --format openai -o out"},
			{6, 0, "export a --format markdown -o out"}, {6, 0, "show a"}, {2, 0, "verify"},
		} {
			if testsize.Every(i, 3) {
				g.want(t, 2*test.times*size*3/4, test.exit, "--store "+store+" "+test.command)
			}
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

func writeLong(w *bufio.Writer, size int) {
	for range size / 6 {
		_, _ = w.WriteString("ab cd ") // Flush returns the error
	}
}

// An import of a list needs memory for its bytes, and none for each message: when the
// messages are new, when the log has all of them, and when it has the first ones. Messages on
// lines need none at all.
func TestMemoryOfAList(t *testing.T) {
	t.Parallel()
	messages := testsize.Pick(8_000, 12_000, 400_000)
	const bytesEach = 40
	g := newGrowing(t, messages/8, messages, func(t *testing.T, dir string, messages int) {
		for name, n := range map[string]int{"list": messages, "longer": messages + messages/2} {
			writeMessages(t, filepath.Join(dir, name+".json"), n, `{"id":"conversation-1","messages":[`, ",", "]}")
			writeMessages(t, filepath.Join(dir, name+".jsonl"), n, "", "\n", "\n")
		}
	})
	list := 4 * bytesEach * messages
	for i, test := range []struct {
		most        int
		store, file string
	}{{list, "store", "list.json"}, {list, "s.db", "list.json"}, {0, "s.db", "list.jsonl"}, {0, "store", "list.jsonl"}} {
		if testsize.Every(i, 2) {
			g.want(t, test.most, 0, "--store "+test.store+" import "+test.file)
			g.want(t, test.most, 0, "--store "+test.store+" import "+test.file)
		}
	}
	g.want(t, 6*bytesEach*messages, 0, "--store store import longer.json")
}

// A record of many members is imported with a small multiple of its bytes, where a list of its
// members needs more than twenty times as much.
func TestMemoryOfAWideRecord(t *testing.T) {
	t.Parallel()
	members := testsize.Pick(250_000, 250_000, 3_000_000)
	const bytesEach = 20
	g := newGrowing(t, members/testsize.Pick(50, 50, 3), members, func(t *testing.T, dir string, members int) {
		var text bytes.Buffer
		text.WriteString(`{"messages":[{"role":"user","content":"hi"}]`)
		for i := range members {
			fmt.Fprintf(&text, `,"member-%d":%d`, i, i)
		}
		text.WriteString("}")
		if err := os.WriteFile(filepath.Join(dir, "wide.json"), text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	g.want(t, 10*bytesEach*members, 0, "--store store import --format messages wide.json")
}

// An import of many sessions needs memory for one of them, and some kilobytes for each session that
// the log keeps open.
func TestMemoryOfManyLists(t *testing.T) {
	t.Parallel()
	lists := testsize.Pick(64, 64, 200)
	messages := testsize.Pick(100, 100, 1000) // of a list
	text := strings.Repeat("0", testsize.Pick(6<<10, 6<<10, 1))
	g := newGrowing(t, lists/8, lists, func(t *testing.T, dir string, lists int) {
		var file bytes.Buffer
		for i := range lists {
			fmt.Fprintf(&file, `{"id":"conversation-%d","messages":[{"role":"user","content":"0"}`, i)
			for n := range messages {
				fmt.Fprintf(&file, `,{"role":"assistant","content":"%d%s"}`, n, text)
			}
			file.WriteString("]}\n")
		}
		if err := os.WriteFile(filepath.Join(dir, "many.jsonl"), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	g.want(t, 100*kibi*lists, 0, "--store s.db import many.jsonl")
}

// An import keeps recordMemory of each record of a file.
func TestMemoryOfManyRecords(t *testing.T) {
	t.Parallel()
	records := testsize.Pick(30_000, 60_000, 200_000)
	g := newGrowing(t, 1000, records, func(t *testing.T, dir string, records int) {
		var text bytes.Buffer
		uuid := func(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n) }
		for n := 1; n <= records; n++ {
			role, message := "user", fmt.Sprintf(`{"role":"user","content":"%d"}`, n)
			if n%2 == 0 {
				role = "assistant"
				message = fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"%d"}]}`, n, n)
			}
			parent := "null"
			if n > 1 {
				parent = `"` + uuid(n-1) + `"`
			}
			fmt.Fprintf(&text, `{"parentUuid":%s,"isSidechain":false,"cwd":"/p","sessionId":"%s","type":%q,"message":%s,"uuid":%q,"timestamp":"2026-05-01T%02d:%02d:%02d.000Z"}`+"\n",
				parent, uuid(0), role, message, uuid(n), n/3600%24, n/60%60, n%60)
		}
		if err := os.WriteFile(filepath.Join(dir, "many.jsonl"), text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	g.want(t, recordMemory*records, 0, "--store store import many.jsonl")
}

// writeMessages writes a list of short messages.
func writeMessages(t *testing.T, path string, messages int, before, between, after string) {
	t.Helper()
	var text bytes.Buffer
	text.WriteString(before)
	for i := range messages {
		if i > 0 {
			text.WriteString(between)
		}
		fmt.Fprintf(&text, `{"role":%q,"content":"%d"}`, []string{"user", "assistant"}[i%2], i)
	}
	text.WriteString(after)
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A line that no append can have written is damage, and needs no memory, however long it
// is.
func TestMemoryOfADamagedLine(t *testing.T) {
	t.Parallel()
	g := newGrowing(t, 2*pages.LongestLine, testsize.Pick(48, 48, 128)*mebi, writeDamage)
	for i, test := range []struct {
		exit int
		args string
	}{
		{1, "verify"}, {1, "ls"}, {1, "show a"}, {0, "store repair a --as b"}, {0, "show b"}, {1, "export a --format jsonl"},
	} {
		if testsize.Every(i, 3) {
			g.want(t, 0, test.exit, "--store store "+test.args)
		}
	}
	session := filepath.Join(g.more, "store", "a.jsonl")
	out, err := exec.CommandContext(t.Context(), "logtool", "--store", filepath.Dir(session), "verify", "a").Output()
	if want := fmt.Sprintf("%s byte %d", session, firstLine(t, session)); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("verify does not name %q: %s", want, out)
	}
}

// writeDamage imports a session, and inserts a damaged line of size bytes after its first
// line.
func writeDamage(t *testing.T, dir string, size int) {
	t.Helper()
	writeTranscript(t, filepath.Join(dir, "short.jsonl"), 60)
	peak(t, dir, 0, "--store store import short.jsonl")
	session := filepath.Join(dir, "store", "a.jsonl")
	lines, err := os.ReadFile(session)
	if err != nil {
		t.Fatal(err)
	}
	first := firstLine(t, session)
	f, err := os.Create(session)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	_, _ = w.Write(lines[:first])
	writeLong(w, size)
	_, _ = w.Write(append([]byte{'\n'}, lines[first:]...))
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// firstLine is the length of the first line of a file.
func firstLine(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	return len(line)
}

// The export and the import of a tree need memory for the largest session, however many
// sessions there are.
func TestMemoryOfATree(t *testing.T) {
	t.Parallel()
	sessions := testsize.Pick(32, 48, 160)
	messages := testsize.Pick(12, 12, 32)
	const length = 32 << 10
	g := newGrowing(t, sessions/4, sessions, func(t *testing.T, dir string, sessions int) {
		text := strings.Repeat("ab cd ", length/6)
		writeStore(t, jsonl.New(filepath.Join(dir, "store"), jsonl.Options{NoSync: true}), sessions, func(i int) (string, []event.Event) {
			start := event.Session{Title: text}
			if i > 0 {
				start.Parent.SessionID = fmt.Sprint("s", i/2)
			}
			events := []event.Event{event.New(start)}
			for range messages {
				events = append(events, event.UserMessage(text))
			}
			return fmt.Sprint("s", i), events
		})
	})
	g.want(t, 0, 0, "--store store export --below s0 -o tree.jsonl")
	if info, err := os.Stat(filepath.Join(g.more, "tree.jsonl")); err != nil || info.Size() < int64(sessions*messages*length) {
		t.Fatal(info, err)
	}
	for _, to := range testsize.Pick(nil, []string{"copy.db"}, []string{"copy", "copy.db"}) {
		g.want(t, 0, 0, "--store "+to+" import tree.jsonl")
	}
}

// writeStore appends sessions to a store.
func writeStore(t *testing.T, store eventlog.Store, sessions int, session func(i int) (string, []event.Event)) {
	t.Helper()
	log := eventlog.Open(store)
	for i := range sessions {
		id, events := session(i)
		if _, err := log.Append(t.Context(), id, eventlog.New(), events...); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// A command over all sessions holds some hundred bytes of each, with and without a catalog.
func TestMemoryOfManySessions(t *testing.T) {
	t.Parallel()
	const most = 4 << 10 // bytes of a session
	sessions := testsize.Pick(400, 800, 6000)
	g := newGrowing(t, sessions/4, sessions, func(t *testing.T, dir string, sessions int) {
		for _, store := range []eventlog.Store{
			jsonl.New(filepath.Join(dir, "store"), jsonl.Options{NoSync: true}),
			sqlite.New(filepath.Join(dir, "s.db"), sqlite.Options{NoSync: true}),
		} {
			writeStore(t, store, sessions, func(i int) (string, []event.Event) {
				start := event.Session{Title: fmt.Sprint("a title of some words, number ", i), CWD: "/home/ada/birdlog", Agent: "agent"}
				return fmt.Sprintf("0190a5a4-7d4c-7000-8000-%012d", i), []event.Event{event.New(start), event.UserMessage("hello")}
			})
		}
	})
	for k, store := range []string{"store", "s.db"} {
		for i, command := range []string{"ls --long", "ls", "stats", "cost", "tree"} {
			if testsize.Every(i+k, 3) {
				g.want(t, most*sessions*3/4, 0, "--store "+store+" "+command)
			}
		}
	}
}
