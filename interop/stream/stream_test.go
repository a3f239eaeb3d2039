package stream_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/stream"
)

const (
	transcripts = "../../testdata/transcripts/stream"
	seals       = "0199a213-81c0-7800-8aa1-bbab2a035a53"
	kelp        = "5a1e0000-0000-4000-8000-0000000000aa"
)

func TestCodex(t *testing.T) {
	log := importtest.NewLog(t)
	text := importtest.ReadFile(t, filepath.Join(transcripts, "exec.jsonl"))
	if got := importtest.Load(t, log, stream.Format{}, "out.jsonl", text); got.Skipped != 1 || len(got.Rejected) > 0 {
		t.Errorf("the import: %+v", got)
	}
	importtest.Again(t, log, stream.Format{}, "out.jsonl", text)
	importtest.Same(t, "path", []string{
		"session_started",
		"stream:thread.started",
		"stream:turn.started",
		"assistant reasoning",
		`assistant calls shell {"command":"bash -lc 'ls'"}`,
		"tool result of shell: seal.txt\n",
		`assistant calls shell {"command":"bash -lc 'cat otter'"}`,
		"tool failed result of shell: no such file\n",
		`assistant calls apply_patch {"changes":[{"path":"seal.txt","kind":"update"}]}`,
		"tool result of apply_patch: completed",
		`assistant calls tides.next {"pier":"north"}`,
		"tool result of tides.next: 06:12",
		"stream:item.completed",
		"assistant One…",
		"step_completed 500+60 0",
	}, importtest.Path(t, log, seals))
}

func TestClaude(t *testing.T) {
	log := importtest.NewLog(t)
	text := importtest.ReadFile(t, filepath.Join(transcripts, "stream-json.jsonl"))
	importtest.Load(t, log, stream.Format{}, "out.jsonl", text)
	importtest.Again(t, log, stream.Format{}, "out.jsonl", text)
	importtest.Same(t, "path", []string{
		"session_started",
		"stream:system",
		"assistant I…",
		`assistant calls Task {"prompt":"Measure the kelp."}`,
		"tool result of Task: Four metres.",
		"assistant The…",
		"stream:result",
		"step_completed 10+40 0.02",
	}, importtest.Path(t, log, kelp))
	agent := importtest.Start(t, log, kelp+"-toolu_kelp01")
	if agent.Parent.SessionID != kelp || agent.Parent.CallID != "toolu_kelp01" {
		t.Errorf("the sub-agent is %+v", agent)
	}
	if start := importtest.Start(t, log, kelp); start.CWD != "/home/ada/kelp" || start.Agent != "claude-code" {
		t.Errorf("the session is %+v", start)
	}
}

// A stream that grows gets the new lines only.
func TestGrowth(t *testing.T) {
	text := importtest.ReadFile(t, filepath.Join(transcripts, "exec.jsonl"))
	lines := strings.SplitAfter(text, "\n")
	var versions []string
	for n := 3; n <= len(lines); n++ {
		versions = append(versions, strings.Join(lines[:n], ""))
	}
	importtest.Grows(t, stream.Format{}, "out.jsonl", versions...)
}

func TestDetect(t *testing.T) {
	importtest.Detects(t, stream.Format{}, "out.jsonl", map[string]bool{
		`{"type":"thread.started","thread_id":"` + seals:                 true,
		`{"type":"system","subtype":"init","session_id":"` + kelp + `"}`: true,
		`{"type":"user","sessionId":"s","session_id":"s","message":{}}`:  false,
		`{"type":"turn.started"}`:                                        false, `{"type":"session_meta","payload":{}}`: false,
	})
}

func FuzzImport(f *testing.F) {
	importtest.Fuzz(f, stream.Format{}, "out.jsonl", filepath.Join(transcripts, "exec.jsonl"), filepath.Join(transcripts, "stream-json.jsonl"))
}

// A command with a nonzero exit code is a failed call, whatever its status.
func TestFailedCommands(t *testing.T) {
	log := importtest.NewLog(t)
	text := importtest.ReadFile(t, filepath.Join(transcripts, "exec.jsonl"))
	importtest.Load(t, log, stream.Format{}, "out.jsonl", strings.Replace(text, `"exit_code":1,"status":"failed"`, `"exit_code":1,"status":"completed"`, 1))
	if all := importtest.Path(t, log, seals); !slices.Contains(all, "tool failed result of shell: no such file\n") {
		t.Errorf("the path: %q", all)
	}
}
