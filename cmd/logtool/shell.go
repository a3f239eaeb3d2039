package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/convlog/convlog/event"
)

// declareCompletion declares the command completion, which cobra makes.
func (a *app) declareCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra made the command
	}
	a.command(cmd, traits{section: secOther, noJSON: true})
	cmd.Args, cmd.RunE, cmd.ValidArgsFunction = cobra.ArbitraryArgs, unknownShell, nil
}

// unknownShell rejects a word that is not a shell.
func unknownShell(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return usagef("completion is for bash, zsh, fish or powershell, not %q", args[0])
}

// manCommand writes manual pages, for packagers.
func (a *app) manCommand() *cobra.Command {
	return a.command(&cobra.Command{
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
			p.Printf("%s in %s\n", count(pages, "page"), clean(args[0]))
			return p.Flush()
		},
	}, traits{section: secOther, noJSON: true, args: []argument{folderArg}})
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
	return a.command(&cobra.Command{
		Use:     "version",
		Short:   "Print the version of logtool and of the format it writes",
		Example: "  logtool version",
		Args:    between(0, 0),
		RunE:    func(*cobra.Command, []string) error { return a.version() },
	}, traits{section: secOther})
}

// versionNow is the version of this program.
func versionNow() versionRow {
	v := versionRow{Version: "devel", Format: event.FormatVersion, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	return v
}

func (a *app) version() error {
	v := versionNow()
	return a.answer(v, func(p *printer) { p.Printf("logtool %s, format %d, %s\n", v.Version, v.Format, v.Go) })
}
