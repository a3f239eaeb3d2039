package main

import (
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = `Import, read, check, extend and move logs of AI conversations.

--store names the store: a folder (one JSONL file per session), a sqlite file, a
schema of a PostgreSQL server, or streams of a NATS server. A prefix decides which
("jsonl:DIR", "sqlite:FILE", "postgres://USER@HOST/DATABASE?schema=NAME",
"nats://USER@HOST?prefix=NAME"). Without a prefix, an existing file or a name that
ends in .db, .sqlite or .sqlite3 is sqlite, and anything else is a folder. The
default is $CONVLOG_STORE, else convlog in $XDG_DATA_HOME (~/.local/share). Put
passwords into CONVLOG_STORE, PGPASSWORD or ~/.pgpass: other users can see the
arguments of a command.

Commands take the id of a session, or the beginning of an id if only one session
has it. The short id of a sub-agent is the short id of its session, a dot, and the
beginning of the rest. append and rm take full ids only.

Long output goes through $PAGER (less by default) on a terminal.

Exit codes: 0 done, 1 failed or found damage, 2 wrong usage, 130 interrupted.`

// commandGroups are the commands by what people do with them, in the order of the help.
var commandGroups = []struct{ title, commands string }{
	{"Read:", "ls show search tail history runlog optree tree diff cost stats"},
	{"Bring in and send out:", "import append export convert"},
	{"Branch:", "fork copy rewind recover"},
	{"Keep and check:", "verify backup repair retire gc"},
	{"Erase:", "scan redact rm"},
	{"Agents:", "runs approve deny answer resolve reconcile abort post token"},
	{"States:", "state snapshots snapshot replay"},
	{"Other:", "completion help man version"},
}

// groupCommands sorts the commands of the help.
func groupCommands(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.SetHelpCommand(helpCommand())
	root.InitDefaultHelpCmd()
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for name := range strings.FieldsSeq(g.commands) {
			for _, cmd := range root.Commands() {
				if cmd.Name() == name {
					cmd.GroupID = g.title
				}
			}
		}
	}
}

// helpCommand is help COMMAND. A command that does not exist is wrong usage.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Example: "  logtool help import",
		RunE: func(help *cobra.Command, args []string) error {
			cmd, rest, err := help.Root().Find(args)
			if err != nil || cmd == nil || len(rest) > 0 {
				return unknownCommand(help.Root(), args)
			}
			return cmd.Help()
		},
		ValidArgsFunction: func(help *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			for _, cmd := range help.Root().Commands() {
				if len(args) == 0 && cmd.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(cmd.Name(), cmd.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// fitHelp makes the help fit the terminal. It uses no template of cobra: text/template would
// link every method of the program.
func (a *app) fitHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		p := a.printer()
		if p.width > 0 {
			cmd.Long = joinLines(cmd.Long)
		}
		var text strings.Builder
		cmd.SetOut(&text)
		help(cmd, args)
		for line := range strings.Lines(text.String()) {
			p.printf("%s\n", hang(strings.TrimSuffix(line, "\n"), p.width))
		}
		_ = p.flush() // nobody reads the help
	})
}

// hang breaks a line of a list, as in "  -n, --dry-run   list the files", below its second
// column. Width 0 is no limit.
func hang(line string, width int) string {
	text := strings.TrimLeft(line, " ")
	gap := strings.Index(text, "  ")
	if width == 0 || len(line) <= width || gap < 0 {
		return line
	}
	indent := len(line) - len(strings.TrimLeft(text[gap:], " "))
	if indent > width/2 {
		return line
	}
	var broken strings.Builder
	broken.WriteString(line[:indent])
	at := indent
	for word := range strings.FieldsSeq(line[indent:]) {
		switch {
		case at == indent:
		case at+1+len(word) > width:
			broken.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			broken.WriteByte(' ')
			at++
		}
		broken.WriteString(word)
		at += len(word)
	}
	return broken.String()
}

// secondColumn is the least indent of the second column of a list in a help.
const secondColumn = 8

// joinLines joins the lines of each paragraph, and of the second column of a list. Other
// lines with an indent stay.
func joinLines(text string) string {
	var joined strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		text := strings.TrimLeft(line, " ")
		plain := line != "" && text == line
		switch {
		case plain && inside, text != "" && len(line)-len(text) > secondColumn:
			line = " " + text
		case joined.Len() > 0:
			joined.WriteByte('\n')
		}
		joined.WriteString(line)
		inside = plain
	}
	return joined.String()
}

// unknownCommand rejects a word that is not a command.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see logtool --help"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + near[0] + "?"
	}
	return usagef("unknown command %q (%s)", args[0], hint)
}
