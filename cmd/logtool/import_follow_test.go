package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/store/jsonl"
)

// followed is a format of TestFollow.
type followed struct {
	prefix, suffix string // of the names of its files
	// line is message n of a session; the first one has the beginning of the session too.
	// Empty for databases.
	line func(session, n int) string
}

var followedFormats = map[string]followed{
	"claude": {suffix: ".jsonl", line: func(session, n int) string {
		parent := "null"
		if n > 0 {
			parent = fmt.Sprintf(`"m%d-%d"`, session, n-1)
		}
		return fmt.Sprintf(`{"type":"user","sessionId":"%s","uuid":"m%d-%d","parentUuid":%s,"timestamp":"2026-01-02T10:00:%02dZ","cwd":"/trip","message":{"role":"user","content":"message %d"}}`+"\n",
			followedID(session), session, n, parent, n, n)
	}},
	"codex": {suffix: ".jsonl", line: func(session, n int) (text string) {
		if n == 0 {
			text = fmt.Sprintf(`{"timestamp":"2026-01-02T10:00:00Z","type":"session_meta","payload":{"id":"%s","cwd":"/trip","cli_version":"0.118.0","model_provider":"openai"}}`+"\n", followedID(session))
		}
		return text + fmt.Sprintf(`{"timestamp":"2026-01-02T10:00:%02dZ","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"message %d"}]}}`+"\n", n, n)
	}},
	"pi": {suffix: ".jsonl", line: func(session, n int) (text string) {
		parent := fmt.Sprintf(`"m%d-%d"`, session, n-1)
		if n == 0 {
			parent = "null"
			text = fmt.Sprintf(`{"type":"session","id":"%s","timestamp":"2026-01-02T10:00:00Z","cwd":"/trip","version":3}`+"\n", followedID(session))
		}
		return text + fmt.Sprintf(`{"type":"message","timestamp":"2026-01-02T10:00:%02dZ","message":{"role":"user","content":[{"type":"text","text":"message %d"}]},"id":"m%d-%d","parentId":%s}`+"\n", n, n, session, n, parent)
	}},
	"opencode": {prefix: "opencode-", suffix: ".db"},
}

func followedID(session int) string { return fmt.Sprintf("7e57ab1e-0000-4000-8000-%012d", session) }

// agentFile is a transcript that a program writes.
type agentFile struct {
	t *testing.T
	followed
	path string
	db   *sql.DB // of a database, open
}

func (f *agentFile) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// append writes messages in two pieces, so that a line is there in part for a time.
func (f *agentFile) append(session, from, to int) {
	f.t.Helper()
	if f.line == nil {
		f.insert(session, from, to)
		return
	}
	text := ""
	for n := from; n < to; n++ {
		text += f.line(session, n)
	}
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	f.must(err)
	for _, piece := range []string{text[:len(text)/2], text[len(text)/2:]} {
		_, err = io.WriteString(file, piece)
		f.must(err)
		time.Sleep(lookTime / 4)
	}
	f.must(file.Close())
}

// insert writes messages into a database. The database has a write-ahead log and stays
// open, as in a running program.
func (f *agentFile) insert(session, from, to int) {
	f.t.Helper()
	if f.db == nil {
		db, err := sql.Open("sqlite", f.path)
		f.must(err)
		db.SetMaxOpenConns(1)
		f.t.Cleanup(func() { _ = db.Close() })
		f.db = db
		f.execute("PRAGMA journal_mode = WAL")
	}
	id := followedID(session)
	if from == 0 {
		for _, table := range []string{
			"session` (`id` text PRIMARY KEY, `project_id` text, `directory` text, `title` text, `version` text, `time_created` integer, `time_updated` integer",
			"message` (`id` text PRIMARY KEY, `session_id` text, `time_created` integer, `time_updated` integer, `data` text",
			"part` (`id` text PRIMARY KEY, `message_id` text, `session_id` text, `time_created` integer, `time_updated` integer, `data` text",
		} {
			f.execute("CREATE TABLE IF NOT EXISTS `" + table + ")")
		}
		f.execute("INSERT OR REPLACE INTO session VALUES (?, 'global', '/trip', 'A trip', '1.18.33', 1772600000000, 1772600000000)", id)
	}
	for n := from; n < to; n++ {
		message, at := fmt.Sprintf("msg_%d_%04d", session, n), 1772600000000+1000*int64(n)
		f.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", message, id, at, at, fmt.Sprintf(`{"role":"user","time":{"created":%d}}`, at))
		time.Sleep(lookTime / 8)
		f.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", "prt"+message, message, id, at, at, fmt.Sprintf(`{"type":"text","text":"message %d"}`, n))
	}
}

func (f *agentFile) execute(query string, args ...any) {
	f.t.Helper()
	_, err := f.db.Exec(query, args...)
	f.must(err)
}

// close closes a database, which ends its write-ahead log.
func (f *agentFile) close() {
	if f.db != nil {
		f.must(f.db.Close())
		f.db = nil
	}
}

// truncate empties the file and writes messages.
func (f *agentFile) truncate(session, to int) {
	f.t.Helper()
	if f.db != nil {
		f.execute("DELETE FROM part")
		f.execute("DELETE FROM message")
	} else {
		f.must(os.Truncate(f.path, 0))
	}
	f.append(session, 0, to)
}

// replace renames another file to this one.
func (f *agentFile) replace(session, to int) {
	f.t.Helper()
	f.close()
	other := &agentFile{f.t, f.followed, f.path + ".tmp", nil}
	other.append(session, 0, to)
	other.close()
	f.must(os.Rename(other.path, f.path))
}

// import --follow stores the events of one import at the end, while a program appends to
// files, truncates them, replaces them and rotates them.
func TestFollow(t *testing.T) {
	t.Parallel()
	for name, format := range followedFormats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFollow(t, format)
		})
	}
}

func testFollow(t *testing.T, format followed) {
	dir := t.TempDir()
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(name string) *agentFile {
		return &agentFile{t, format, filepath.Join(files, format.prefix+name+format.suffix), nil}
	}
	grows, shrinks, changes, rotates := file("grows"), file("shrinks"), file("changes"), file("rotates")
	grows.append(1, 0, 2)

	store := filepath.Join(dir, "followed")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int)
	follower := quiet()
	var said strings.Builder
	follower.out, follower.err = &said, &said
	go func() { done <- follower.run(ctx, []string{"--store", store, "import", "--follow", files}) }()

	shrinks.append(2, 0, 3)
	changes.append(3, 0, 2)
	rotates.append(4, 0, 2)
	grows.append(1, 2, 4)
	until(t, store, 1, 3)
	until(t, store, 4, 1)
	shrinks.truncate(2, 5)
	changes.replace(3, 4)
	rotates.close()
	rotates.must(os.Rename(rotates.path, filepath.Join(files, format.prefix+"rotates.1"+format.suffix)))
	rotates.append(5, 0, 3)
	grows.append(1, 4, 6)
	for session, last := range map[int]int{1: 5, 2: 4, 3: 3, 4: 1, 5: 2} {
		until(t, store, session, last)
	}
	stop()
	if code := <-done; code != 0 {
		t.Errorf("import --follow ended with %d: %s", code, &said)
	}

	once := filepath.Join(dir, "once")
	if code := quiet().run(t.Context(), []string{"--store", once, "import", files}); code != 0 {
		t.Fatalf("import ended with %d", code)
	}
	for session := 1; session <= 5; session++ {
		got, want := storedEvents(t, store, session), storedEvents(t, once, session)
		if !slices.Equal(got, want) {
			t.Errorf("session %d has the events\n%q\nwant\n%q", session, got, want)
		}
	}
}

// quiet is logtool without output.
func quiet() *app {
	return &app{in: os.Stdin, out: io.Discard, err: io.Discard, getenv: func(string) string { return "" }, now: time.Now}
}

// storedEvents are the ids and the data of the events of a session; nil if it is missing. A
// session has the name that its file had when it was imported: renamed files get one name.
func storedEvents(t *testing.T, store string, session int) (all []string) {
	t.Helper()
	log := eventlog.Open(jsonl.New(store, jsonl.Options{ReadOnly: true}))
	defer log.Close()
	for e, err := range log.Read(t.Context(), followedID(session), eventlog.All()) {
		if err != nil {
			return all // not there yet
		}
		all = append(all, e.ID.String()+" "+string(e.Type)+" "+strings.ReplaceAll(string(e.Data), "rotates.1.", "rotates."))
	}
	return all
}

// until waits until a session has message n.
func until(t *testing.T, store string, session, n int) {
	t.Helper()
	text := fmt.Sprintf(`"message %d"`, n)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(lookTime / 10) {
		if slices.ContainsFunc(storedEvents(t, store, session), func(e string) bool { return strings.Contains(e, text) }) {
			return
		}
	}
	t.Fatalf("session %d has no message %d: %q", session, n, storedEvents(t, store, session))
}

// A program has written a commit to its write-ahead log, and has not shown it to readers when
// the file is read. It is read again when the commit is visible.
func TestFollowInvisibleCommit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "opencode-a.db")
	file := &agentFile{t, followedFormats["opencode"], path, nil}
	file.append(1, 0, 2)
	before := indexOf(path)
	file.append(1, 2, 3)
	after := indexOf(path)
	show := func(header [indexHeader]byte) {
		t.Helper()
		index, err := os.OpenFile(path+indexSuffix, os.O_WRONLY, 0)
		file.must(err)
		_, err = index.WriteAt(header[:], 0)
		file.must(errors.Join(err, index.Close()))
	}
	store := filepath.Join(dir, "store")
	log := eventlog.Open(jsonl.New(store))
	defer log.Close()
	w := &watch{run: &importRun{app: quiet()}, formats: formats.All(), opts: interop.Options{Growing: true}, paths: []string{dir}, rows: map[string]interop.Row{}}
	for _, step := range []struct {
		header [indexHeader]byte
		events int
	}{{before, 3}, {after, 4}} {
		show(step.header)
		file.must(w.look(t.Context(), log))
		if got := storedEvents(t, store, 1); len(got) != step.events {
			t.Fatalf("got %d events, want %d: %q", len(got), step.events, got)
		}
	}
}

// Only files that are still there count as rejected: programs write a file, then rename it.
func TestRejectedRecordsOfAMissingFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.jsonl")
	row := interop.Row{Path: path, Result: interop.Result{Rejected: []interop.Rejection{{Line: 1, Reason: "cut off"}}}}
	w := &watch{run: &importRun{app: quiet()}, paths: []string{dir}, rows: map[string]interop.Row{path: row}}
	if err := w.rejected(); err != nil {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.rejected(); err == nil {
		t.Error("the rejected record is no error")
	}
}
