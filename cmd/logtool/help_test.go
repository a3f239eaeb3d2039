package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// everyCommand calls f with each command that logtool declares.
func everyCommand(f func(a *app, cmd *cobra.Command)) {
	a := &app{getenv: func(string) string { return "" }}
	root := a.root()
	for _, cmd := range append([]*cobra.Command{root}, a.declared...) {
		f(a, cmd)
	}
}

// Each command has an example. The command accepts its flags and arguments.
func TestExamplesMakeSense(t *testing.T) {
	everyCommand(func(_ *app, cmd *cobra.Command) {
		switch cmd.Name() {
		case "logtool", "version", "completion", "help":
			return
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			for _, words := range commandsOf(line) {
				checkExample(t, line, words)
			}
		}
	})
}

// checkExample finds the command that an example names, and has it read the rest.
func checkExample(t *testing.T, line string, words []string) {
	t.Helper()
	root := (&app{}).root() // flags keep what they were set to
	cmd, rest, err := root.Find(words)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil || cmd == root {
		t.Errorf("%s: %v", strings.TrimSpace(line), err)
	}
}

// commandsOf are the words after each logtool in a line for a shell.
func commandsOf(line string) (commands [][]string) {
	inside := false
	for _, word := range shellWords(line) {
		switch {
		case word == "|" || word == ">" || word == "<" || word == "&&":
			inside = false
		case word == "logtool":
			inside, commands = true, append(commands, nil)
		case inside:
			last := len(commands) - 1
			commands[last] = append(commands[last], word)
		}
	}
	return commands
}

// shellWords splits a line at spaces outside of quotes.
func shellWords(line string) (words []string) {
	var quote rune
	var word strings.Builder
	begun := false
	for _, r := range strings.TrimSpace(line) + " " {
		switch {
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			begun = false
			word.Reset()
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case r == quote:
			quote = 0
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	return words
}

// The help lists each command. Each command of logtool is in a section.
func TestHelpIsWhole(t *testing.T) {
	everyCommand(func(a *app, cmd *cobra.Command) {
		if !cmd.HasParent() {
			return
		}
		if a.traitsOf(cmd).section == "" && !cmd.Parent().HasParent() {
			t.Errorf("%s is in no section", cmd.CommandPath())
		}
		if !strings.Contains(a.helpOf(cmd.Parent()), "  "+cmd.Name()+" ") && a.traitsOf(cmd).section != secOther {
			t.Errorf("%s is not in the help of %s", cmd.CommandPath(), cmd.Parent().CommandPath())
		}
	})
}

// A help has at most 50 lines of 80 columns, and a line for each command.
func TestHelpFits(t *testing.T) {
	everyCommand(func(a *app, cmd *cobra.Command) {
		text := fitHelp(a.helpOf(cmd), 80)
		if n := strings.Count(text, "\n"); n > 50 {
			t.Errorf("the help of %s has %d lines", cmd.CommandPath(), n)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); columns(line) > 80 {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), columns(line), line)
			}
		}
		if n := columns(cmd.Short); n > 66 {
			t.Errorf("%s: the short help has %d columns", cmd.CommandPath(), n)
		}
	})
}

// Each former name of a command says where the command is now. Other words lead to the command
// that they mean.
func TestWrongWords(t *testing.T) {
	for line, want := range map[string]string{
		"gc": `"gc" is now "logtool store gc"`, "optree order-42": `"optree" is now "logtool runlog --tree"`, "snapshots": `"snapshots" is now "logtool state list"`,
		"snapshot": `"snapshot" is now "logtool state snapshot"`, "replay a --until 3": `"replay" is now "logtool state replay"`,
		"token": `"token" is now "logtool state token"`, "runs": `"runs" is now "logtool agent runs"`, "approve": `"approve" is now "logtool agent approve"`,
		"deny": `"deny" is now "logtool agent deny"`, "answer": `"answer" is now "logtool agent answer"`, "resolve": `"resolve" is now "logtool agent resolve"`,
		"reconcile": `"reconcile" is now "logtool agent reconcile"`, "post": `"post" is now "logtool agent post"`, "abort": `"abort" is now "logtool agent abort"`,
		"repair": `"repair" is now "logtool store repair"`, "--store x gc --reindex": `"gc" is now "logtool store gc"`,
		"convert a b": `"convert" is now "logtool store convert"`, "backup": `"backup" is now "logtool store backup"`,
		"retire --idle 90d": `"retire" is now "logtool store retire"`, "scan": `"scan" is now "logtool store scan"`, "help gc": `"gc" is now "logtool store gc"`,
		"state order-42 --at 7": `"logtool state order-42" is now "logtool state show order-42"`,
		"grep":                  "did you mean logtool search?", "find x": "did you mean logtool search?", "open": "did you mean logtool show?", "cat": "did you mean logtool show?",
		"view": "did you mean logtool show?", "delete": "did you mean logtool rm?", "remove": "did you mean logtool rm?", "lst --long": "did you mean logtool ls?",
		"list": "did you mean logtool ls?", "session x": "did you mean logtool ls?", "dir": "did you mean logtool ls?", "log": "did you mean logtool history?", "clone": "did you mean logtool copy?",
		"undo": "did you mean logtool rewind?", "check": "did you mean logtool verify?", "fsck": "did you mean logtool verify?", "price": "did you mean logtool cost?",
		"usage": "did you mean logtool cost?", "shwo": "did you mean logtool show?", "verfy": "did you mean logtool verify?", "agent aprove": "did you mean logtool agent approve?",
		"bakcup": "did you mean logtool store backup?", "frobnicate": "see logtool --help", "tar": "see logtool --help", "store frobnicate": "see logtool store --help",
	} {
		var said strings.Builder
		a := &app{in: strings.NewReader(""), out: io.Discard, err: &said, getenv: func(string) string { return "" }}
		if code := a.run(t.Context(), strings.Fields(line)); code != 2 || !strings.Contains(said.String(), want) {
			t.Errorf("logtool %s: exit %d: %s, want %s", line, code, said.String(), want)
		}
	}
}

func TestErrorsAreOneLineThatSaysWhatToDo(t *testing.T) {
	head := event.Head{Seq: 7, Hash: event.Hash{0xab}}
	full := head.Hash.String()
	tests := []struct {
		err  error
		code int
		want string
	}{
		{nil, 0, ""},
		{usagef("wrong"), 2, "wrong"},
		{fmt.Errorf("find: %w", eventlog.ErrNotFound), 1, "find: session not found; logtool ls lists the sessions"},
		{&eventlog.ConflictError{Session: "a b", Actual: head}, 1, `conflict in session "a b": expected head none, found 7:ab0000000000; ` +
			`read the new events (logtool tail 'a b'), then append with --expect 7:` + full},
		{&eventlog.ConflictError{Session: "a", Expected: head}, 1, `conflict in session "a": expected head 7:ab0000000000, found none; ` +
			`the session does not exist (any more): append with --expect new to begin it`},
		{&eventlog.ConflictError{Session: "a", ID: "X"}, 1, `conflict in session "a": event X exists with other content`},
		{&eventlog.CorruptError{Path: "a.jsonl", Offset: 5, Seq: 2, Cause: errors.New("torn\x1b[2J")}, 1,
			`corrupt: a.jsonl at byte 5 (seq 2): torn\x1b[2J; logtool verify shows all damage; restore the session from a copy, or salvage the readable events with logtool store repair`},
		{&event.VersionError{What: "envelope", Got: 2, Max: 1}, 1,
			"envelope version 2 is newer than 1, the highest this program reads; use a newer logtool"},
		{&event.VersionError{What: "sqlite schema", Got: 4, Max: 5}, 1,
			"sqlite schema version 4 is older than 5, the lowest this program reads: convert the store to a folder with the logtool that wrote it"},
		{&eventlog.UnknownOutcomeError{Session: "a", Head: head, Cause: errors.New("no space")}, 1,
			`append to session "a" at 7:ab0000000000: outcome unknown: no space; look at the end of the session (logtool tail) before you append again`},
		{&fs.PathError{Op: "open", Path: "log", Err: fs.ErrPermission}, 1,
			"open log: permission denied; look at its owner and permissions (ls -l), or run this as a user who may open it"},
		{fmt.Errorf("lock session: %w for 30s", eventlog.ErrLocked), 1,
			"lock session: locked by another process for 30s; let the other process finish and run this again, or wait longer, as with --wait 10m"},
		{errors.Join(errors.New("one\ntwo"), errors.New("three")), 1, "one two three"},
		{fmt.Errorf("read: %w", context.Canceled), 130, "interrupted"},
		{fmt.Errorf("print: %w", &fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}), 1, ""},
	}
	for _, test := range tests {
		if got := explain(test.err); got != test.want {
			t.Errorf("explain(%#v)\n got %s\nwant %s", test.err, got, test.want)
		}
		if got := exitCode(test.err); got != test.code {
			t.Errorf("exitCode(%v) = %d, want %d", test.err, got, test.code)
		}
	}
}

// On a terminal, paragraphs and the second columns of lists are broken anew.
func TestHelpIsBrokenAnew(t *testing.T) {
	const text = "One two\nthree.\n\n  Codex        ~/.codex\n  OpenHands    a long description of\n               two lines\n  {\"a\": 1}\n"
	want := "One two three.\n\n  Codex        ~/.codex\n  OpenHands    a long description of two lines\n  {\"a\": 1}"
	if got := joinLines(text); got != want {
		t.Errorf("joined:\n%s", got)
	}
	for line, want := range map[string]string{
		"  OpenHands    a long description":     "  OpenHands    a long\n               description",
		"  OpenHands    short":                  "  OpenHands    short",
		"a long line without a second column":   "a long line without a second column",
		"  a-very-long-name-of-a-flag   a word": "  a-very-long-name-of-a-flag   a word",
	} {
		if got := hang(line, 30); got != want {
			t.Errorf("%q hangs as %q", line, got)
		}
	}
}
