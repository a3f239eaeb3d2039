package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// complete makes shells complete sessions and the values of flags.
func (a *app) complete(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, unknownShell
		}
		switch _, args, _ := strings.Cut(cmd.Use, " "); {
		case strings.HasPrefix(args, "SESSION SEQ"):
			cmd.ValidArgsFunction = a.completeSession(0)
		case strings.Contains(args, "SESSION...") || args == "A B":
			cmd.ValidArgsFunction = a.completeSessions
		case strings.HasPrefix(args, "SESSION [REVIEW]"):
			cmd.ValidArgsFunction = a.completeOpen(openReview)
		case strings.HasPrefix(args, "SESSION WAIT"):
			cmd.ValidArgsFunction = a.completeOpen(openWait)
		case strings.HasPrefix(args, "SESSION KEY"):
			cmd.ValidArgsFunction = a.completeOpen(openOutcome)
		case strings.HasPrefix(args, "TEXT [SESSION]"):
			cmd.ValidArgsFunction = a.completeSession(1)
		case strings.Contains(args, "SESSION"):
			cmd.ValidArgsFunction = a.completeSession(0)
		}
		for flag, values := range flagValues(cmd.Name()) {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
			}
		}
	}
}

// unknownShell rejects a word that is not a shell.
func unknownShell(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return usagef("completion is for bash, zsh, fish or powershell, not %q", args[0])
}

// flagValues are the values of a command's flags.
func flagValues(command string) map[string][]string {
	values := map[string][]string{"projection": setList(), "path": {allPaths, activePath}, "source": sourceNames(), "by": groupings, "role": roleNames}
	for _, t := range event.Types() {
		values["type"] = append(values["type"], string(t))
	}
	switch command {
	case "import":
		values["format"] = formatNames()
	case "export":
		values["format"] = slices.Sorted(maps.Keys(exportFormats))
	case "history":
		values["format"] = historyFormats
	case "runs":
		values["status"] = statusNames()
	case "ls":
		values["sort"] = sorts
	}
	return values
}

// completeSession completes a session as argument n only.
func (a *app) completeSession(n int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completeSessions(cmd, args, typed)
	}
}

// completeSessions completes the beginning of an id, with titles. It is silent about
// an unreadable store: the command reports it.
func (a *app) completeSessions(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var rows []*sessionRow
	err := a.reading(func(log *eventlog.Log) error {
		for info, err := range log.List(cmd.Context(), eventlog.Part{Prefix: typed}) {
			if err != nil {
				return err
			}
			if info.Err == nil {
				rows = append(rows, newSessionRow(info))
			}
		}
		return readNames(cmd.Context(), log, rows, a.progress)
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var found []cobra.Completion
	for _, row := range rows {
		found = append(found, cobra.CompletionWithDesc(row.ID, row.name()))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeOpen completes a session, then the id of something that it waits for.
func (a *app) completeOpen(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return a.completeSessions(cmd, args, typed)
		case 1:
		default:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		err := a.session(cmd.Context(), forReading, args[0], func(log *eventlog.Log, session string) error {
			info, err := flow.Info(cmd.Context(), log, session)
			for _, row := range openWork(&info) {
				if row.Kind == kind && strings.HasPrefix(row.ID, typed) {
					found = append(found, cobra.CompletionWithDesc(row.ID, clean(row.Name)))
				}
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// manCommand writes manual pages, for packagers.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages, one per command",
		Long: `Write manual pages into a folder, one per command: logtool.1, logtool-ls.1 and
so on. man finds them, for example, in ~/.local/share/man/man1.`,
		Example: `  logtool man ~/.local/share/man/man1 && man logtool-import`,
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pages, err := writeManual(cmd.Root(), args[0], a.now())
			if err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			p := a.printer()
			p.printf("%s in %s\n", count(pages, "page"), clean(args[0]))
			return p.flush()
		},
	}
}

func writeManual(root *cobra.Command, dir string, now time.Time) (pages int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	root.DisableAutoGenTag = true
	day := now.UTC().Truncate(24 * time.Hour)
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "convlog", Manual: "convlog", Date: &day}, dir); err != nil {
		return 0, err
	}
	written, err := filepath.Glob(filepath.Join(dir, "logtool*.1"))
	return len(written), err
}

// versionRow is the version with --json.
type versionRow struct {
	Version string `json:"version"`
	Format  int    `json:"format"`
	Go      string `json:"go"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of logtool and of the format it writes",
		Example: "  logtool version",
		Args:    between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := versionRow{Version: "devel", Format: event.FormatVersion, Go: runtime.Version()}
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
				v.Version = info.Main.Version
			}
			return a.answer(v, func(p *printer) { p.printf("logtool %s, format %d, %s\n", v.Version, v.Format, v.Go) })
		},
	}
}
