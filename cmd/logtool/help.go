package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
)

const rootHelp = `Import, read and check logs of AI conversations. Alone, it lists the newest.`

// rootNotes end the help of logtool.
const rootNotes = `SESSION is an id or its beginning; 3f0c.agent-b is a sub-agent of 3f0c. append, redact
and rm take full ids. logtool help COMMAND explains a command.

Exit codes: 0 done, 1 failed or found damage, 2 wrong usage, 130 interrupted.`

// helpWidth is the width of the help if the output is no terminal.
const helpWidth = 80

// helpCommand is help COMMAND. A command that does not exist is wrong usage.
func (a *app) helpCommand() *cobra.Command {
	help := a.command(&cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Example: "  logtool help import\n  logtool help store gc",
		RunE: func(help *cobra.Command, args []string) error {
			cmd, rest, err := help.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd, rest)
			}
			return cmd.Help()
		},
	}, traits{section: secOther})
	help.ValidArgsFunction = func(help *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		if cmd, rest, err := help.Root().Find(args); err == nil && len(rest) == 0 {
			for _, sub := range cmd.Commands() {
				names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return help
}

// setHelp makes the help fit the terminal. It uses no template of cobra: text/template would
// link every method of the program.
func (a *app) setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		p := a.printer()
		p.Printf("%s", fitHelp(a.helpOf(cmd), cmp.Or(p.Width, helpWidth)))
		_ = p.Flush() // nobody reads the help
	})
}

// helpOf is the help of a command.
func (a *app) helpOf(cmd *cobra.Command) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\nUsage: %s\n", joinLines(cmd.Long), cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(&text, "\n%s\n", cmd.Example)
	}
	if cmd.HasSubCommands() {
		text.WriteByte('\n')
		a.listCommands(&text, cmd)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			flags.AddFlag(f)
		}
	})
	if flags.HasAvailableFlags() {
		fmt.Fprintf(&text, "\nFlags:\n%s", flags.FlagUsages())
	}
	if cmd.HasParent() {
		text.WriteString("\nEach command has --store, --json and --wait: see logtool help.\n")
	} else {
		fmt.Fprintf(&text, "\n%s\n", joinLines(rootNotes))
	}
	return text.String()
}

// listCommands lists the commands below cmd. The commands of logtool are in sections; the
// last section is one line.
func (a *app) listCommands(text *strings.Builder, cmd *cobra.Command) {
	section, other := "", ""
	for _, sub := range a.listed(cmd) {
		t := a.traitsOf(sub)
		if t.section == secOther {
			other += ", " + sub.Name()
			continue
		}
		if !cmd.HasParent() && t.section != section {
			section = t.section
			fmt.Fprintf(text, "%s:\n", section)
		}
		fmt.Fprintf(text, "  %-10s  %s\n", sub.Name(), sub.Short)
	}
	if other != "" {
		fmt.Fprintf(text, "%s: %s\n", secOther, strings.TrimPrefix(other, ", "))
	}
}

// listed are the commands below cmd, in the order in which they were declared.
func (a *app) listed(cmd *cobra.Command) (all []*cobra.Command) {
	for _, sub := range a.declared {
		if sub.Parent() == cmd {
			all = append(all, sub)
		}
	}
	for _, sub := range cmd.Commands() {
		if _, declared := a.traits[sub]; !declared {
			all = append(all, sub) // of cobra
		}
	}
	return all
}

// fitHelp breaks the lines of a help.
func fitHelp(text string, width int) string {
	var out strings.Builder
	lines := term.NewWrapper(&out, width)
	for line := range strings.Lines(text) {
		fmt.Fprintf(lines, "%s\n", hang(strings.TrimSuffix(line, "\n"), width))
	}
	_ = lines.Flush() // a strings.Builder returns no error
	return out.String()
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
