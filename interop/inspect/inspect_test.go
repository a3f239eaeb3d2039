package inspect_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/inspect"
	"github.com/convlog/convlog/interop/internal/importtest"
)

var (
	tides  = filepath.Join("../../testdata/transcripts/inspect", "tides.json")
	format = inspect.Format{}
)

func TestDetect(t *testing.T) {
	importtest.Detects(t, format, "f.json", map[string]bool{
		`{"version":2,"status":"success","eval":{"run_id":"r","task":"tides","task_id":"i","data`: true,
		`{"status":"started","eval":{"task":"tides","model":"m"}}`:                                true,
		`{"version":1,"eval":"none"}`:                                                             false,
		`{"eval":{"task":"tides","model":"m"}}`:                                                   false,
		`{"version":2,"messages":[{"role":"user","content":"Hi"}]}`:                               false,
		`[{"version":2,"eval":{"task":"t","model":"m"}}]`:                                         false,
		"": false,
	})
}

func TestSamples(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, tides)
	got := importtest.Load(t, log, format, "logs/tides.json", content)
	importtest.Again(t, log, format, "logs/tides.json", content)
	if got.Records != 15 || got.Raw != 6 || len(got.Rejected) != 1 || len(got.Sessions) != 2 || !strings.HasPrefix(got.Sessions[1], "tides-2-1-") {
		t.Fatalf("import: %+v", got)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "system You…", "user When… image opaque",
		`assistant reasoning I… calls clock {"zone":"UTC"} calls bash {"cmd":"x"}`, "tool result of clock: noon",
		"tool failed result of bash: Cannot parse", "assistant Noon…", "inspect:sample_init", "inspect:model", "inspect:score",
		"inspect:attachments", "inspect:log", "step_completed 40+4 0",
	}, importtest.Path(t, log, got.Sessions[0]))
	importtest.Same(t, "active path", []string{
		"session_started", "user Old?…", "assistant reasoning Yes…", "inspect:step", "step_completed 5+1 0",
	}, importtest.Path(t, log, got.Sessions[1]))
	start, all := importtest.Start(t, log, got.Sessions[0]), importtest.Messages(t, log, got.Sessions[0])
	if start.Title != "When is this?" || start.Agent != "tides" || !strings.Contains(string(start.Extra), `"scores":{"match"`) {
		t.Errorf("the session starts with %+v", start)
	}
	if all[1].Parts[1].MediaType != "image/png" || all[1].Parts[1].Blob.Bytes != 8 {
		t.Errorf("the image is %+v", all[1].Parts[1])
	}
	importtest.Same(t, "usage", event.Usage{InputTokens: 60, OutputTokens: 8, CacheReadTokens: 20}, all[2].Usage)
}

// Samples are appended while the evaluation runs, and its status changes.
func TestGrowingLog(t *testing.T) {
	sample := func(id string) string {
		return `{"id":` + id + `,"epoch":1,"messages":[{"role":"user","content":"Sample ` + id + `"},{"role":"assistant","content":"Done"}]}`
	}
	begin := `{"version":2,"status":"success","eval":{"task":"t","run_id":"r","model":"m"},"samples":[`
	importtest.Grows(t, format, "f.json", begin+sample("1")+"]}", begin+sample("1")+","+sample("2")+"]}")

	log := importtest.NewLog(t)
	importtest.Load(t, log, format, "f.json", strings.Replace(begin, "success", "started", 1)+sample("1")+"]}")
	got := importtest.Load(t, log, format, "f.json", begin+sample("1")+"]}")
	last := importtest.Events(t, log, got.Sessions[0])
	if got.Events != 1 || last[len(last)-1].Type != event.SessionUpdated {
		t.Errorf("import: %+v", got)
	}
}

func TestTruncatedOrEmptyLog(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, tides)
	got := importtest.Load(t, log, format, "f.json", content[:len(content)-30])
	if len(got.Rejected) != 1 || got.Events != 0 {
		t.Errorf("import: %+v", got)
	}
	got = importtest.Load(t, log, format, "f.json", `{"version":2,"status":"error","eval":{"task":"t","run_id":"r"},"samples":null}`)
	if got.Skipped != 1 || got.Events != 0 {
		t.Errorf("import: %+v", got)
	}
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, format, "f.json", tides) }
