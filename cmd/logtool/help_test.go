package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command has an example. The command accepts its flags and arguments.
func TestExamplesMakeSense(t *testing.T) {
	root := (&app{}).root()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "version", "completion", "help":
			continue
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.Name())
		}
		for line := range strings.Lines(cmd.Example) {
			for _, words := range commandsOf(line) {
				checkExample(t, line, words)
			}
		}
	}
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

// No line of help is wider than a terminal.
func TestHelpFits(t *testing.T) {
	var all func(cmd *cobra.Command)
	all = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if line = strings.TrimSuffix(line, "\n"); columns(line) > 88 && !strings.HasPrefix(line, "Projections: ") {
				t.Errorf("%s: %d columns: %s", cmd.Name(), columns(line), line)
			}
		}
		for _, c := range cmd.Commands() {
			all(c)
		}
	}
	all((&app{}).root())
}
