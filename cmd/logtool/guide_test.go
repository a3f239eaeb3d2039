package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// consoleCommand is a command in a console block of a page, with the output below it.
type consoleCommand struct {
	line   string
	output []string
}

// ofSamples matches the commands that read the bundled transcripts, and change nothing.
var ofSamples = regexp.MustCompile(`^logtool .*(\b(3f0c|8b21|c4d9|e7aa)|^logtool --store demo |'"go test" parse'|\bspecies\b|--source claude)`)

// changing matches the commands that do not end, or change a store or a file.
var changing = regexp.MustCompile(`tail -f|logtool redact .* --reason|>|resume|restore`)

// The console blocks of README.md and of the guide about the bundled transcripts have the
// output of the commands.
func TestConsoleBlocks(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("CONVLOG_STORE", "demo")
	if out, err := exec.Command("logtool", "import", filepath.Join(root, "testdata", "transcripts", "samples")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "guide", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		for _, c := range consoleCommands(t, page) {
			line, _, _ := strings.Cut(c.line, "   #")
			if !ofSamples.MatchString(line) || changing.MatchString(line) {
				continue
			}
			checked++
			out, err := exec.Command("bash", "-c", line).CombinedOutput()
			got := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
			if len(c.output) == 0 && err != nil || len(c.output) > 0 && !sameOutput(c.output, got) {
				t.Errorf("%s: %s: %v\n%s\nthe page has\n%s", filepath.Base(page), line, err, out, strings.Join(c.output, "\n"))
			}
		}
	}
	if checked < 15 {
		t.Errorf("found only %d commands", checked)
	}
}

// consoleCommands returns the commands of the console blocks of a page.
func consoleCommands(t *testing.T, page string) (commands []consoleCommand) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	inBlock := false
	for line := range strings.SplitSeq(string(b), "\n") {
		command, begins := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = line == "```console"
		case inBlock && begins:
			commands = append(commands, consoleCommand{line: command})
		case inBlock && len(commands) > 0:
			c := &commands[len(commands)-1]
			c.output = append(c.output, line)
		}
	}
	return commands
}

// storedSize matches the size of a session: it has the path of the imported file in it, and
// so differs with the place of the clone.
var storedSize = regexp.MustCompile(`\b[0-9]\.[0-9] KiB\b`)

// sameOutput compares an output with the lines of a page. A line … stands for any lines,
// an empty line at the end of a page's output does not count, and a size is any size.
func sameOutput(page, got []string) bool {
	page, got = slices.Clone(page), slices.Clone(got)
	for _, lines := range [][]string{page, got} {
		for i, line := range lines {
			lines[i] = storedSize.ReplaceAllString(line, "0.0 KiB")
		}
	}
	before, after, short := page, []string(nil), false
	if i := slices.Index(page, "…"); i >= 0 {
		before, after, short = page[:i], page[i+1:], true
	}
	if len(got) < len(before)+len(after) || !short && len(got) != len(before) {
		return false
	}
	return slices.Equal(before, got[:len(before)]) && slices.Equal(after, got[len(got)-len(after):])
}
