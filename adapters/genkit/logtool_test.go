package genkit_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	adapter "github.com/convlog/convlog/adapters/genkit"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/adaptertest"
	"github.com/convlog/convlog/store/jsonl"
)

// logtool shows, searches, counts, forks, compares and redacts a session of Genkit, and Genkit has the fork and not the redacted text.
func TestLogtool(t *testing.T) {
	dir := t.TempDir()
	logtool := filepath.Join(t.TempDir(), "logtool.exe")
	if out, err := exec.Command("go", "build", "-C", filepath.Join("..", ".."), "-o", logtool, "./cmd/logtool").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(logtool, append([]string{"--store", dir}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("logtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	log := adaptertest.Open(t, func() (eventlog.Store, error) { return jsonl.New(dir), nil })
	s := adapter.New[state](log)
	save(t, s, "one", "s", 1, user("Where is my parcel?"), model("In Leipzig."))
	save(t, s, "two", "s", 2, user("Where is my parcel?"), model("In Leipzig."), user("Since when?"), model("My code is 4711."))

	show := run("show", "genkit/s")
	for _, text := range []string{"Where is my parcel?", "In Leipzig.", "My code is 4711."} {
		if !strings.Contains(show, text) {
			t.Errorf("show lacks %q:\n%s", text, show)
		}
	}
	run("fork", "genkit/s", "--at-turn", "1", "--before", "--as", "genkit/f")
	end := latest(t, s, "f")
	if end == nil || len(end.State.Messages) != 2 || end.State.Custom.Counter != 1 {
		t.Fatalf("the fork in Genkit is %+v", end)
	}
	save(t, s, "three", "f", 3, user("Where is my parcel?"), model("In Leipzig."), user("And when here?"))
	diff := run("diff", "genkit/s", "genkit/f")
	if !strings.Contains(diff, "My code is 4711.") || !strings.Contains(diff, "And when here?") || strings.Contains(diff, "user  Where is my parcel?") {
		t.Errorf("diff:\n%s", diff)
	}
	for _, wanted := range [][]string{
		{"genkit/s", "search", "Since when"},
		{"genkit/f", "tree", "genkit/s"},
		{"genkit/s", "cost", "--per", "session"},
	} {
		if out := run(wanted[1:]...); !strings.Contains(out, wanted[0]) {
			t.Errorf("%s lacks %s:\n%s", wanted[1:], wanted[0], out)
		}
	}
	last, err := log.Head(t.Context(), "genkit/s")
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range log.Read(t.Context(), "genkit/s", eventlog.Between(1, last.Seq)) {
		if err == nil && strings.Contains(string(e.Data), "4711") {
			run("redact", "genkit/s", fmt.Sprint(e.Seq), "--reason", "a code")
		}
	}
	if show := run("show", "genkit/s", "--full"); strings.Contains(show, "4711") || !strings.Contains(show, "Since when?") {
		t.Errorf("after redact:\n%s", show)
	}
	if got := fmt.Sprint(latest(t, s, "s").State.Messages[3].Text()); strings.Contains(got, "4711") {
		t.Errorf("Genkit has %q", got)
	}
	if check := run("verify"); !strings.Contains(check, "no damage") {
		t.Errorf("verify: %s", check)
	}
}
