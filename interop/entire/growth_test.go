package entire_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop/internal/importtest"
)

func TestGrowingTranscript(t *testing.T) {
	for _, path := range []string{plain, kinds} {
		text := importtest.ReadFile(t, path)
		importtest.Lines{Format: format}.GrowsByBytes(t, text, importtest.Cuts(text))
	}
}

// The last line grows while its calls run. The import appends the new blocks and
// results, then the tokens that were added.
func TestGrowingLine(t *testing.T) {
	log := importtest.NewLog(t)
	short := importtest.ReadFile(t, filepath.Join(transcripts, "growing-1.jsonl"))
	long := importtest.ReadFile(t, filepath.Join(transcripts, "growing-2.jsonl"))
	importtest.Load(t, log, format, "1", short)
	importtest.Load(t, log, format, "2", long)
	importtest.Again(t, log, format, "1", short)
	importtest.Again(t, log, format, "2", long)
	id := only(t, log)
	importtest.Same(t, "log", []string{
		"session_started", "user Commit…", "assistant I…", `assistant calls Read {"path":"tides.csv"}`, "tool result of Read: 11:40,low",
		`assistant calls bash {"command":"git commit -qm tides"}`, "tool result of bash: ", `assistant calls bash {"command":"git push"}`,
		"tool failed result of bash: no remote", "assistant It…", "user Thank…", "step_completed 0+8 0",
	}, importtest.Path(t, log, id))
}

// answer returns an answer line with one block.
func answer(block string) string {
	return `{"v":1,"agent":"pi","cli_version":"1","type":"assistant","content":[` + block + "]}\n"
}

// ask returns a user line.
func ask(text string) string {
	return `{"v":1,"agent":"pi","cli_version":"1","type":"user","content":[{"text":"` + text + "\"}]}\n"
}

// versions imports versions of a transcript one after the other, and returns an
// outline of the log.
func versions(t *testing.T, texts ...string) (lines []string) {
	t.Helper()
	log := importtest.NewLog(t)
	for _, text := range texts {
		importtest.Load(t, log, format, "f.jsonl", text)
		importtest.Again(t, log, format, "f.jsonl", text)
	}
	for _, e := range importtest.Events(t, log, only(t, log)) {
		lines = append(lines, importtest.Draw(t, &e))
	}
	return lines
}

// A result can arrive after other messages followed its call. It comes after them in
// the log, and the next message comes after it.
func TestLateResult(t *testing.T) {
	call := `{"type":"tool_use","id":"c","name":"run","input":{}`
	called := call + `,"result":{"output":"done","status":"success"}}`
	wait, next := answer(`{"type":"text","text":"Wait"}`), answer(`{"type":"text","text":"Next"}`)
	want := []string{"session_started", "user Go…", "assistant calls run {}", "assistant Wait…", "tool result of run: done", "assistant Next…", "user Thanks…"}
	got := versions(t,
		ask("Go")+answer(call+"}")+wait, ask("Go")+answer(called)+wait+next, ask("Go")+answer(called)+wait+next+ask("Thanks"),
		ask("Go")+answer(call+"}")+wait,
	)
	importtest.Same(t, "log", want, got)
	got = versions(t, ask("Go")+answer(call+"}")+wait, ask("Go")+answer(called)+wait, ask("Go")+answer(called)+wait+next+ask("Thanks"))
	importtest.Same(t, "log, result imported alone", want, got)
	changed := strings.Replace(called, "done", "failed", 1)
	got = versions(t, ask("Go")+answer(called), ask("Go")+answer(changed)+wait)
	importtest.Same(t, "log of another result", []string{
		"session_started", "user Go…", "assistant calls run {}", "tool result of run: done", "entire:assistant", "assistant Wait…",
	}, got)
}

// When the agent went back, its new answer is another branch.
func TestBranch(t *testing.T) {
	long := ask("Go") + answer(`{"type":"text","text":"North"}`) + ask("Why?")
	importtest.Same(t, "log", []string{
		"session_started", "user Go…", "assistant North…", "user Why?…", "head_moved to 2", "assistant South…", "head_moved to 4", "user Oh.…",
	}, versions(t, long, ask("Go"), ask("Go")+answer(`{"type":"text","text":"South"}`), long, long+ask("Oh.")))
}

// A newer CLI rewrites all lines, and each line has the new version.
func TestNewCLIVersion(t *testing.T) {
	log := importtest.NewLog(t)
	for _, path := range []string{plain, kinds} {
		text := importtest.ReadFile(t, path)
		importtest.Load(t, log, format, "f.jsonl", text)
		text = strings.ReplaceAll(text, `"cli_version":"0.`, `"cli_version":"1.`)
		got := importtest.Load(t, log, format, "f.jsonl", text)
		importtest.Again(t, log, format, "f.jsonl", text)
		all := importtest.Events(t, log, got.Sessions[0])
		if got.Events != 1 || all[len(all)-1].Type != event.SessionUpdated {
			t.Errorf("import: %+v, and the log ends with %s", got, all[len(all)-1].Type)
		}
	}
}

// anyTranscript draws lines with their blocks. Calls can have results.
func anyTranscript(r *rapid.T) (lines [][]string) {
	for range rapid.IntRange(1, 6).Draw(r, "lines") {
		line := []string{rapid.SampledFrom([]string{"user", "assistant", "assistant", "note"}).Draw(r, "kind")}
		for range rapid.IntRange(1, 4).Draw(r, "blocks") {
			block := `{"text":"` + rapid.SampledFrom([]string{"a", "b"}).Draw(r, "text") + `"}`
			if line[0] == "assistant" && rapid.Bool().Draw(r, "calls") {
				block = fmt.Sprintf(`{"type":"tool_use","name":"run","result":{"output":"%d"}}`, rapid.IntRange(0, 2).Draw(r, "output"))
			}
			line = append(line, block)
		}
		lines = append(lines, line)
	}
	return lines
}

// earlier draws an earlier version of a transcript: without its last lines, without
// the last blocks of the final answer, and without some results.
func earlier(r *rapid.T, lines [][]string) (all [][]string) {
	for _, line := range lines[:rapid.IntRange(1, len(lines)).Draw(r, "lines")] {
		line = slices.Clone(line)
		for i := range line {
			if before, _, ok := strings.Cut(line[i], `,"result"`); ok && rapid.IntRange(0, 3).Draw(r, "waits") == 0 {
				line[i] = before + "}"
			}
		}
		all = append(all, line)
	}
	if last := &all[len(all)-1]; (*last)[0] == "assistant" {
		*last = (*last)[:rapid.IntRange(2, len(*last)).Draw(r, "blocks")]
	}
	return all
}

func write(lines [][]string) (text string) {
	for i, line := range lines {
		text += fmt.Sprintf(`{"v":1,"agent":"pi","type":%q,"input_tokens":%d,"content":[%s]}`, line[0], i+len(line), strings.Join(line[1:], ",")) + "\n"
	}
	return text
}

// Law: the versions of a transcript can be imported in any order. The path then has
// the content of the newest version, but results can come later. Importing a version
// again adds nothing. Tokens are counted once.
func TestVersionsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		whole := anyTranscript(r)
		versions := []string{write(whole)}
		for version := whole; len(versions) < 4; {
			version = earlier(r, version)
			versions = append(versions, write(version))
		}
		alone, grown := importtest.NewLog(r), importtest.NewLog(r)
		importtest.Text(r, alone, format, "f", versions[0])
		for _, text := range rapid.Permutation(versions).Draw(r, "order") {
			importtest.Text(r, grown, format, "f", text)
			importtest.Again(r, grown, format, "f", text)
		}
		id := importtest.Sessions(r, alone)[0]
		words, results, tokens := outline(r, alone, id)
		grownWords, grownResults, grownTokens := outline(r, grown, id)
		importtest.Same(r, "path", words, grownWords)
		importtest.Same(r, "results", results, grownResults)
		importtest.Same(r, "tokens", tokens, grownTokens)
	})
}

// outline returns an outline of the path: the results, sorted, and all other messages.
// tokens is the number of input tokens on the path.
func outline(t importtest.TB, log *eventlog.Log, id string) (words, results []string, tokens int64) {
	t.Helper()
	for _, e := range importtest.ActivePath(t, log, id) {
		if s, ok, err := event.Decode[event.StepCompletion](&e); ok && err == nil {
			tokens += s.Usage.InputTokens
			continue
		}
		if e.Type == event.SessionUpdated {
			continue // a title from the first user message
		}
		m, _, err := event.Decode[event.Message](&e)
		if err != nil {
			t.Fatal(err)
		}
		tokens += m.Usage.InputTokens
		if line := importtest.Draw(t, &e); m.Role == event.Tool {
			results = append(results, m.Parts[0].CallID+line)
		} else {
			words = append(words, line)
		}
	}
	slices.Sort(results)
	return words, results, tokens
}
