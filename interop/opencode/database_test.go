package opencode_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/opencode"
	"github.com/convlog/convlog/runlog/stats"
)

const (
	newts = "ses_newts0000001"
	forks = "ses_newts0000003"
)

// newDatabase makes a database of OpenCode with a write-ahead log, as a running OpenCode
// has it.
func newDatabase(t *testing.T) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "opencode.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	execute(t, db, "PRAGMA journal_mode = WAL")
	execute(t, db, importtest.ReadFile(t, "testdata/opencode.sql"))
	return path, db
}

func execute(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

// A database is imported while a program writes to it. The import of the grown database
// adds the new parts, and changes no byte of its files.
func TestRunningDatabase(t *testing.T) {
	path, db := newDatabase(t)
	log := importtest.NewLog(t)
	first := importtest.Files(t, log, opencode.Format{}, path)
	if len(first.Sessions) != 3 || len(first.Rejected) > 0 || first.Skipped > 0 {
		t.Fatalf("the import: %+v", first)
	}
	execute(t, db, `INSERT INTO message VALUES ('msg_newts00009', 'ses_newts0000001', 1772600030000, 1772600030000, '{"role":"user","time":{"created":1772600030000}}')`)
	execute(t, db, `INSERT INTO part VALUES ('prt_newts0016', 'msg_newts00009', 'ses_newts0000001', 1772600030000, 1772600030000, '{"type":"text","text":"Thanks."}')`)
	execute(t, db, `UPDATE session SET cost = 0.1, time_updated = 1772600030000 WHERE id = 'ses_newts0000001'`)
	before := files(t, path)
	if got := importtest.Files(t, log, opencode.Format{}, path); got.Events != 1 {
		t.Errorf("the grown database: %+v", got)
	}
	if got := importtest.Files(t, log, opencode.Format{}, path); got.Events != 0 {
		t.Errorf("a second import: %+v", got)
	}
	importtest.Same(t, "files", before, files(t, path))
	importtest.Verify(t, log)
	importtest.Same(t, "path", []string{
		"session_started",
		"user How…",
		"opencode:step-start",
		"assistant reasoning",
		`assistant calls task {"description":"count"}`,
		"tool result of task: seven newts",
		"assistant Seven.…",
		"step_completed 120+35 0.003",
		"user Thanks.…",
	}, importtest.Path(t, log, newts))
}

// files are the contents of a database and its write-ahead log.
func files(t *testing.T, path string) (all []string) {
	t.Helper()
	for _, name := range []string{path, path + "-wal"} {
		all = append(all, importtest.ReadFile(t, name))
	}
	return all
}

// A database that no program has open is read without a file beside it.
func TestClosedDatabase(t *testing.T) {
	path, db := newDatabase(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	importtest.Files(t, importtest.NewLog(t), opencode.Format{}, path)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

// A program has locked its database. That is no damage: the import fails, and a later one
// finds everything.
func TestLockedDatabase(t *testing.T) {
	opencode.WaitFor(t, 50*time.Millisecond)
	path, db := newDatabase(t)
	execute(t, db, "PRAGMA locking_mode = EXCLUSIVE")
	execute(t, db, "UPDATE session SET cost = 0.1")
	log := importtest.NewLog(t)
	table, err := interop.Import(t.Context(), log, []interop.Format{opencode.Format{}}, []string{path})
	if err == nil || len(table.Rows) != 1 || table.Rows[0].Err == nil || len(table.Rows[0].Rejected) > 0 {
		t.Errorf("the locked database: %+v, %v", table, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := importtest.Files(t, log, opencode.Format{}, path); len(got.Sessions) != 3 {
		t.Errorf("the unlocked database: %+v", got)
	}
}

// A database and the export of its session are the same session.
func TestDatabaseAndExport(t *testing.T) {
	path, _ := newDatabase(t)
	log := importtest.NewLog(t)
	importtest.Files(t, log, opencode.Format{}, path)
	start := importtest.Start(t, log, "ses_newts0000002")
	if start.Parent.SessionID != newts || start.CWD != "/home/ada/pond" || !strings.Contains(string(start.Extra), `"projectID":"global"`) {
		t.Errorf("the sub-agent is %+v", start)
	}
	export := `{"info":` + extra(t, string(importtest.Start(t, log, newts).Extra)) + `,"messages":[{"info":{"role":"user","time":{"created":1772600001000},` +
		`"agent":"build","model":{"providerID":"sea","modelID":"tidal-9"},"id":"msg_newts00001","sessionID":"ses_newts0000001"},` +
		`"parts":[{"type":"text","text":"How many newts are there?","id":"prt_newts0001","sessionID":"ses_newts0000001","messageID":"msg_newts00001"}]}]}`
	if got := importtest.Text(t, log, opencode.Format{}, "export.json", export); got.Events != 0 || len(got.Rejected) > 0 {
		t.Errorf("the export: %+v", got)
	}
}

// extra is the info in the extra of a session.
func extra(t *testing.T, text string) string {
	t.Helper()
	info, ok := strings.CutPrefix(strings.TrimSuffix(text, "}"), `{"info":`)
	if !ok {
		t.Fatalf("the extra is %s", text)
	}
	return info
}

// The messages that a fork copied do not count: the session they were copied from has them.
func TestForkedSession(t *testing.T) {
	path, _ := newDatabase(t)
	log := importtest.NewLog(t)
	importtest.Files(t, log, opencode.Format{}, path)
	var cost event.Cost
	for _, e := range importtest.Events(t, log, forks) {
		if !e.Inherited() {
			cost = cost.Add(e.Cost)
		}
	}
	if want, _ := event.USD(0.001); cost != want {
		t.Errorf("the fork costs %v", cost)
	}
	s, err := stats.Load(t.Context(), log, forks)
	if got := s.Total; err != nil || got.Messages != 2 || got.Responses != 1 || got.Turns != 1 || got.Calls != 0 {
		t.Errorf("the fork counts %+v, %v", got, err)
	}
}

// A row without an object and a session of a newer version are rejected. The rest is
// imported.
func TestUnreadableRows(t *testing.T) {
	path, db := newDatabase(t)
	execute(t, db, `UPDATE part SET data = 'cut {' WHERE id = 'prt_newts0005'`)
	execute(t, db, `DELETE FROM message WHERE session_id = 'ses_newts0000002'`)
	execute(t, db, "CREATE TABLE `session_message` (`id` text, `session_id` text)")
	execute(t, db, `INSERT INTO session_message VALUES ('m', 'ses_newts0000002')`)
	got := importtest.Files(t, importtest.NewLog(t), opencode.Format{}, path)
	if len(got.Sessions) != 2 || len(got.Rejected) != 2 || !strings.Contains(got.Rejected[0].Reason, "prt_newts0005") ||
		!strings.Contains(got.Rejected[1].Reason, "session_message") {
		t.Errorf("the import: %+v", got)
	}
}

func TestDetectDatabase(t *testing.T) {
	head := importtest.ReadFile(t, "../../testdata/transcripts/opencode/opencode.db")
	importtest.Detects(t, opencode.Format{}, "copy", map[string]bool{head: true, head[:100]: false, "SQLite format 4": false})
	importtest.Detects(t, opencode.Format{}, "/x/opencode-dev.db", map[string]bool{head[:100]: true, "SQLite": false})
}
