package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// complete lets the shell complete sessions and the values of flags, for all
// commands that take them.
func (a *app) complete(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, noShell
		}
		switch _, args, _ := strings.Cut(cmd.Use, " "); {
		case strings.Contains(args, "SESSION...") || args == "A B":
			cmd.ValidArgsFunction = a.completeSessions
		case strings.HasPrefix(args, "TEXT [SESSION]"):
			cmd.ValidArgsFunction = a.completeSearched
		case strings.Contains(args, "SESSION"):
			cmd.ValidArgsFunction = a.completeSession
		}
		for flag, values := range flagValues(cmd.Name()) {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
			}
		}
	}
}

// noShell refuses words that are no shell.
func noShell(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return usagef("completion is for bash, zsh, fish or powershell, not %q", args[0])
}

// flagValues are the words that a command's flags take.
func flagValues(command string) map[string][]string {
	values := map[string][]string{"projection": setList(), "path": {allPaths, activePath}, "type": typeNames()}
	switch command {
	case "import":
		values["format"] = formatNames()
	case "export":
		values["format"] = slices.Sorted(maps.Keys(exportFormats))
	case "history":
		values["format"] = historyFormats
	case "ls":
		values["sort"], values["source"] = sorts, sourceNames()
	}
	return values
}

// typeNames are the types of events that this version knows.
func typeNames() (names []string) {
	for _, t := range event.Types() {
		names = append(names, string(t))
	}
	return names
}

// completeSession is completeSessions for the first argument only.
func (a *app) completeSession(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeSessions(cmd, args, typed)
}

// completeSearched is completeSessions for the second argument only.
func (a *app) completeSearched(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeSessions(cmd, args, typed)
}

// completeSessions offers the sessions whose ids begin with what was typed, each
// with its title. A store that cannot be read offers none: the command will say
// why.
func (a *app) completeSessions(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var rows []*sessionRow
	err := a.reading(func(log *eventlog.Log) error {
		for info, err := range log.Sessions(cmd.Context()) {
			if err != nil {
				return err
			}
			if strings.HasPrefix(info.ID, typed) && info.Err == nil {
				rows = append(rows, newSessionRow(info))
			}
		}
		return readNames(cmd.Context(), log, rows)
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var found []cobra.Completion
	for _, row := range rows {
		found = append(found, cobra.CompletionWithDesc(row.ID, row.called()))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
