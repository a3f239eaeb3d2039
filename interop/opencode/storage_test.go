package opencode_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/internal/importtest"
)

// writeStorage writes the fixture as a storage folder and returns the folder.
func writeStorage(t *testing.T) string {
	t.Helper()
	var document struct {
		Info     json.RawMessage
		Messages []struct {
			Info  json.RawMessage
			Parts []json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(importtest.ReadFile(t, compacted)), &document); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "opencode", "storage")
	writeFile(t, document.Info, root, "session", "p1", "ses_gull")
	for _, m := range document.Messages {
		id := idOf(t, m.Info)
		writeFile(t, m.Info, root, "message", "ses_gull", id)
		for _, p := range m.Parts {
			writeFile(t, p, root, "part", id, idOf(t, p))
		}
	}
	return root
}

func idOf(t *testing.T, v json.RawMessage) string {
	t.Helper()
	var told struct{ ID string }
	if err := json.Unmarshal(v, &told); err != nil {
		t.Fatal(err)
	}
	return told.ID
}

func writeFile(t *testing.T, content []byte, path ...string) {
	t.Helper()
	file := filepath.Join(path...) + ".json"
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Law: the storage and the export give equal logs, and the second import adds nothing.
func TestStorageEqualsExport(t *testing.T) {
	export, kept, root := importtest.NewLog(t), importtest.NewLog(t), writeStorage(t)
	importtest.Load(t, export, format, "s.json", importtest.ReadFile(t, compacted))
	table := importtest.Table(t, kept, format, filepath.Dir(root))
	if len(table.Rows) != 1 || len(table.Skipped) != 0 || len(table.Rows[0].Rejected) != 0 {
		t.Fatalf("import: %+v", table)
	}
	want, got := importtest.Dump(t, export), importtest.Dump(t, kept)
	importtest.Same(t, "log", want[1:], got[1:]) // without the origin
	if start := importtest.Start(t, kept, "ses_gull"); start.Source.Path != filepath.Join(root, "session", "p1", "ses_gull.json") {
		t.Errorf("the session starts with %+v", start)
	}
	if again := importtest.Files(t, export, format, root); again.Events != 0 {
		t.Errorf("import of the storage after the export: %+v", again)
	}
}

// Later messages and parts are added, and a truncated file is rejected. The path of any
// file imports the session.
func TestGrowingStorage(t *testing.T) {
	root, log := writeStorage(t), importtest.NewLog(t)
	later := filepath.Join(t.TempDir(), "later")
	message, part := filepath.Join(root, "message", "ses_gull", "msg_62.json"), filepath.Join(root, "part", "msg_62", "prt_622.json")
	if err := os.Rename(message, later); err != nil {
		t.Fatal(err)
	}
	importtest.Files(t, log, format, root)
	if err := os.Rename(later, message); err != nil {
		t.Fatal(err)
	}
	whole := importtest.ReadFile(t, part)
	writeFile(t, []byte(whole[:20]), strings.TrimSuffix(part, ".json"))
	got := importtest.Files(t, log, format, message)
	if len(got.Rejected) != 1 || !strings.Contains(got.Rejected[0].Reason, "prt_622.json: cut off") || got.Events == 0 {
		t.Errorf("import of a message: %+v", got)
	}
	writeFile(t, []byte(whole), strings.TrimSuffix(part, ".json"))
	if got := importtest.Files(t, log, format, part); got.Imported != 1 || len(got.Rejected) != 0 {
		t.Errorf("import of a part: %+v", got)
	}
	if got := importtest.Files(t, log, format, root); got.Events != 0 {
		t.Errorf("import again: %+v", got)
	}
	importtest.Verify(t, log)
}

// A message without its session is rejected.
func TestAMessageWithoutItsSession(t *testing.T) {
	root := writeStorage(t)
	if err := os.RemoveAll(filepath.Join(root, "session")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(root, "message", "ses_gull", "msg_11.json"), filepath.Join(root, "part", "msg_11", "prt_110.json")} {
		got := importtest.Files(t, importtest.NewLog(t), format, path)
		if got.Events != 0 || len(got.Rejected) != 1 || got.Rejected[0].Reason != "the file of its session is missing from the storage" {
			t.Errorf("import: %+v", got)
		}
	}
	writeFile(t, []byte("{"), root, "session", "p1", "ses_gull")
	log := importtest.NewLog(t)
	got, err := format.Import(t.Context(), log, importtest.Source(filepath.Join(root, "session", "p1", "ses_gull.json"), `{"id":`))
	if err != nil || got.Events != 0 || len(got.Rejected) != 1 {
		t.Errorf("import: %+v, %v", got, err)
	}
}

// OpenCode is still writing the newest message. It is held until it is complete, so that
// no event has a part of a text.
func TestUnfinishedMessageWaits(t *testing.T) {
	root, log := filepath.Join(t.TempDir(), "storage"), importtest.NewLog(t)
	grows := func(imported, held int, content string, path ...string) {
		t.Helper()
		writeFile(t, []byte(content), append([]string{root}, path...)...)
		got := importtest.Files(t, log, format, root)
		if got.Imported+got.Raw != imported || got.Skipped != held {
			t.Errorf("%s: import: %+v", filepath.Join(path...), got)
		}
	}
	writeFile(t, []byte(`{"id":"s","projectID":"p"}`), root, "session", "p", "s")
	grows(0, 2, `{"id":"m1","sessionID":"s","role":"user","time":{"created":1}}`, "message", "s", "m1")
	grows(1, 0, `{"id":"p1","messageID":"m1","sessionID":"s","type":"text","text":"Is it high?"}`, "part", "m1", "p1")
	grows(0, 1, `{"id":"m2","sessionID":"s","role":"assistant","time":{"created":2}}`, "message", "s", "m2")
	grows(1, 1, `{"id":"p2","messageID":"m2","sessionID":"s","type":"step-start"}`, "part", "m2", "p2")
	grows(0, 2, `{"id":"p3","messageID":"m2","sessionID":"s","type":"text","text":"No","time":{"start":3}}`, "part", "m2", "p3")
	grows(1, 0, `{"id":"p3","messageID":"m2","sessionID":"s","type":"text","text":"Not yet.","time":{"start":3,"end":4}}`, "part", "m2", "p3")
	grows(0, 1, `{"id":"p4","messageID":"m2","sessionID":"s","type":"tool","tool":"tide","callID":"c","state":{"status":"pending","input":{}}}`, "part", "m2", "p4")
	grows(1, 0, `{"id":"p4","messageID":"m2","sessionID":"s","type":"tool","tool":"tide","callID":"c","state":{"status":"running","input":{"at":5}}}`, "part", "m2", "p4")
	grows(2, 0, `{"id":"m3","sessionID":"s","role":"assistant","time":{"created":6},"error":{"name":"Aborted"}}`, "message", "s", "m3")
	importtest.Same(t, "path", []string{
		"session_started", "user Is…", "opencode:step-start", "assistant Not…", `assistant calls tide {"at":5}`, "assistant", "opencode:error",
	}, importtest.Path(t, log, "s"))
}
