package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/convlog/convlog/internal/testsize"
)

// openTerminal opens a pseudo-terminal with a width: what is written to tty is read from
// screen.
func openTerminal(t *testing.T, width int) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	fd := int(screen.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, tty
}

var colourCodes = regexp.MustCompile("\x1b\\[[0-9;]*[mK]")

// onScreen runs logtool on a terminal of a width, without a pager, and returns the lines.
func onScreen(t *testing.T, width int, args ...string) (lines []string) {
	t.Helper()
	screen, tty := openTerminal(t, width)
	a := &app{in: os.Stdin, out: tty, err: tty, now: time.Now, getenv: environment("PAGER=cat TERM=xterm")}
	done := make(chan int, 1)
	go func() {
		done <- a.run(t.Context(), args)
		tty.Close()
	}()
	for s := bufio.NewScanner(screen); s.Scan(); {
		lines = append(lines, strings.TrimRight(colourCodes.ReplaceAllString(s.Text(), ""), "\r"))
	}
	if code := <-done; code != 0 {
		t.Fatalf("logtool %s: exit %d\n%s", strings.Join(args, " "), code, strings.Join(lines, "\n"))
	}
	return lines
}

// A command asks the terminal nothing: a terminal that does not answer would delay it.
func TestTheTerminalIsNotAsked(t *testing.T) {
	t.Parallel()
	screen, tty := openTerminal(t, 80)
	cmd := exec.Command("logtool", "version")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	first := bufio.NewScanner(screen)
	if !first.Scan() || !strings.HasPrefix(first.Text(), "logtool ") {
		t.Errorf("the terminal gets %q", first.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// tables are the commands that print tables: no row becomes two lines.
var tables = map[string]bool{"import": true, "ls": true, "stats": true, "cost": true}

// hostile are texts that are wider, or less wide, than their number of characters.
var hostile = []string{
	strings.Repeat("Où est 名前 of the parcel? ", 40),
	strings.Repeat("✅ done ⚡ 👩‍💻 ❤️ 🇫🇷 ", 30),
	"\t" + strings.Repeat("a\tb\t名\t", 30),
	strings.Repeat("x", 500) + " " + strings.Repeat("名", 300),
	strings.Repeat("\x07\x1b[2J\u202e\u009b", 60),
	strings.Repeat("e\u0301\u0301", 300) + strings.Repeat("\u200d\ufeff", 300) + " שלום مرحبا",
}

// writeHostile writes a transcript for each hostile text, with the text as name, title,
// call, result and answer.
func writeHostile(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, text := range hostile {
		call := map[string]any{"id": "call", "type": "function", "function": map[string]any{"name": "f" + strings.Repeat("long", 15), "arguments": "{}"}}
		conversation := map[string]any{"id": fmt.Sprintf("hostile-conversation-%d", i), "messages": []any{
			map[string]any{"role": "user", "content": "hostile " + text},
			map[string]any{"role": "assistant", "tool_calls": []any{call}},
			map[string]any{"role": "tool", "tool_call_id": "call", "content": text + "\n\n    " + text},
			map[string]any{"role": "assistant", "content": "# " + text + "\n- " + text},
		}}
		body, err := json.Marshal(conversation)
		if err != nil {
			t.Fatal(err)
		}
		name := []rune(strings.NewReplacer("/", "", "\t", "", "\x1b", "", "\x07", "").Replace(text))
		if err := os.WriteFile(filepath.Join(dir, string(name[:60])+".json"), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// No line of the commands is wider than the terminal.
func TestLinesFitTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "log")
	samples := filepath.Join("..", "..", "testdata", "transcripts", "samples")
	long := filepath.Join(dir, "hostile")
	writeHostile(t, long)
	for _, width := range testsize.Pick([]int{60}, []int{60, 120}, []int{60, 80, 120}) {
		if err := os.RemoveAll(store); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"import", samples, long}, {"import", "--verbose", samples, long}, {"ls"}, {"ls", "--long"}, {"show", "3f0c"},
			{"show", "hostile-conversation-0"}, {"show", "hostile-conversation-4", "--full"}, {"show", "hostile-conversation-5"},
			{"show", "--full", "8b21"}, {"history", "hostile-conversation-3"}, {"stats"}, {"stats", "--per", "week"}, {"cost"},
			{"cost", "8b21", "--turns"}, {"cost", "--per", "model"}, {"cost", "--per", "tree"}, {"tree"}, {"tree", "--long"},
			{"runlog", "8b21"}, {"runlog", "--tree", "8b21"}, {"runlog", "--tree", "hostile-conversation-2"}, {"agent", "runs", "--all"}, {"search", "species"},
			{"search", "hostile", "--limit", "0"}, {"state", "list", "8b21"}, {"help", "import"}, {"help"}, {"agent"},
		} {
			lines := onScreen(t, width, append([]string{"--store", store}, args...)...)
			if len(lines) == 0 {
				t.Errorf("%s prints nothing", args)
			}
			if whole := onScreen(t, 1000, append([]string{"--store", store}, args...)...); tables[args[0]] && len(whole) != len(lines) {
				t.Errorf("%s on %d columns breaks rows: %d lines, not %d", args, width, len(lines), len(whole))
			}
			for _, line := range lines {
				if n := columns(line); n > width {
					t.Errorf("%s on %d columns: %d: %s", strings.Join(args, " "), width, n, line)
				}
			}
		}
		// JSON is whole.
		if lines := onScreen(t, width, "--store", store, "--json", "ls"); columns(strings.Join(lines, "\n")) < 1000 {
			t.Errorf("--json on %d columns: %s", width, lines)
		}
		for _, line := range onScreen(t, width, "--store", store, "--json", "ls") {
			if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "}") {
				t.Errorf("--json on %d columns: %s", width, line)
			}
		}
	}
}

// On a terminal, the short id of a session is unique in the store, also if a flag leaves the
// other sessions out.
func TestShortIDsAreUniqueInTheStore(t *testing.T) {
	store := filepath.Join(t.TempDir(), "log")
	for _, id := range []string{"shared-prefix-a", "shared-prefix-b"} {
		if code := quiet().run(t.Context(), []string{"--store", store, "append", id, "hello"}); code != 0 {
			t.Fatalf("append: %d", code)
		}
	}
	for _, args := range [][]string{{"cost", "shared-prefix-a", "--source", "none"}, {"cost", "shared-prefix-a", "--per", "tree"}} {
		lines := onScreen(t, 80, append([]string{"--store", store}, args...)...)
		if !strings.HasPrefix(lines[1], "shared-prefix-a ") {
			t.Errorf("%s prints %q", args, lines)
		}
	}
}

// The first output on the terminal removes the progress, and nothing is drawn after it.
func TestOutputEndsTheProgress(t *testing.T) {
	screen, tty := openTerminal(t, 80)
	now := time.Unix(1000, 0)
	a := &app{out: tty, err: tty, now: func() time.Time { return now }, getenv: environment("PAGER=cat TERM=xterm NO_COLOR=1")}
	a.startProgress("searching")
	a.progress.Begin()
	now = now.Add(3 * time.Second)
	a.progress.Draw()
	p := a.printer()
	p.Printf("found\n")
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	a.progress.Draw()
	tty.Close()
	text, _ := io.ReadAll(screen) // a closed terminal is an error
	if want := "\r\x1b[Ksearching: 3s\r\x1b[Kfound\r\n"; string(text) != want {
		t.Errorf("the terminal got %q, want %q", text, want)
	}
}
