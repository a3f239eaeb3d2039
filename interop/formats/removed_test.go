package formats_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/upkeep/erase"
)

// removeAll removes the sessions of a log, forks before their parents.
func removeAll(t *testing.T, log *eventlog.Log) {
	t.Helper()
	for left := importtest.Sessions(t, log); len(left) > 0; left = importtest.Sessions(t, log) {
		for _, id := range left {
			if err := erase.Remove(t.Context(), log, id); err != nil && !errors.Is(err, eventlog.ErrInUse) {
				t.Fatal(err)
			}
		}
	}
}

// Law: a session that was removed stays away from a second import, which counts its records
// as skipped and names it. With Again, the import brings all sessions back as they were.
func TestRemovedSessionsStayAway(t *testing.T) {
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			log, paths := importtest.NewLog(t), folders(t, format)
			first := importtest.Files(t, log, format, paths...)
			want := importtest.Contents(t, log)
			removeAll(t, log)
			second := importtest.Files(t, log, format, paths...)
			slices.Sort(first.Sessions)
			slices.Sort(second.LeftOut)
			importtest.Same(t, "sessions that are left out", first.Sessions, second.LeftOut)
			if second.Events+second.Imported+second.Raw+second.Present+len(second.Sessions) != 0 || len(importtest.Sessions(t, log)) != 0 {
				t.Errorf("import after the removal: %+v", second)
			}
			table, err := interop.Import(t.Context(), log, []interop.Format{format}, paths, interop.Options{Again: true})
			if total := table.Total(); err != nil || total.Events != first.Events || len(total.LeftOut) != 0 {
				t.Errorf("import again: %+v, %v", total, err)
			}
			importtest.Same(t, "log", want, importtest.Contents(t, log))
			if after := importtest.Files(t, log, format, paths...); after.Events != 0 || len(after.LeftOut) != 0 {
				t.Errorf("import after the import again: %+v", after)
			}
		})
	}
}

// A removed session stays away when its file has grown, and so do its new sub-agents.
func TestGrownFilesOfRemovedSessions(t *testing.T) {
	const id = "3f1c0000-0000-4000-8000-000000000001"
	line := func(uuid, parent, more string) string {
		return `{"parentUuid":` + parent + `,"sessionId":"` + id + `","version":"2.1.29","uuid":"` + uuid + `",` +
			`"timestamp":"2026-02-03T10:00:00.000Z","isSidechain":false,` + more + "}\n"
	}
	first := line("u1", "null", `"type":"user","message":{"role":"user","content":"Count."}`)
	more := line("u2", `"u1"`, `"type":"assistant","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c1","name":"Task","input":{"prompt":"Help."}}],"usage":{"input_tokens":1,"output_tokens":1}}`) +
		line("u3", `"u2"`, `"type":"user","toolUseResult":{"agentId":"a1","status":"completed"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"4"}]}`)
	agent := `{"parentUuid":null,"isSidechain":true,"agentId":"a1","sessionId":"` + id + `","version":"2.1.29","uuid":"v1",` +
		`"timestamp":"2026-02-03T10:00:00.000Z","type":"user","message":{"role":"user","content":"Help."}}` + "\n"
	dir, log := t.TempDir(), importtest.NewLog(t)
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(id+".jsonl", first)
	importtest.Files(t, log, claude.Format{}, dir)
	removeAll(t, log)
	write(id+".jsonl", first+more)
	write(id+"/subagents/agent-a1.jsonl", agent)
	got := importtest.Files(t, log, claude.Format{}, dir)
	if len(got.LeftOut) != 2 || got.Events != 0 || got.Skipped != got.Records || got.Records != 4 {
		t.Errorf("import of the grown file: %+v", got)
	}
	table, err := interop.Import(t.Context(), log, []interop.Format{claude.Format{}}, []string{dir}, interop.Options{Again: true})
	if total := table.Total(); err != nil || len(total.Sessions) != 2 || total.Events == 0 {
		t.Errorf("import again: %+v, %v", total, err)
	}
}
