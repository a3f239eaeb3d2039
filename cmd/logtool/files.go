package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/projection"
)

// filesOptions choose what files prints of a session.
type filesOptions struct {
	file  string    // --file
	at    eventFlag // --at
	path  string    // allPaths or activePath
	diff  bool      // --diff
	print bool      // --print
}

func (a *app) filesCommand() *cobra.Command {
	var x filesOptions
	cmd := a.command(&cobra.Command{
		Use:   "files SESSION",
		Short: "List the files that a session read and changed; show the changes",
		Long: `List the files that the tools of a session read and changed, from the calls and their
results. ADDED and REMOVED count lines. TEXT is what the log has of the file at the end:
known, absent (no such file), or unknown. --diff prints each change, --print the text of
one file; --at SEQ shows the state at that event.

The log does not have all changes. A gap is a change that no call names: a person, a
hook or another program changed the file. Shell commands count if they name a file; the
others are counted below the table. What a sub-agent changed is in its own session.`,
		Example: "  logtool files order-42 --diff --file parse.go\n  logtool files order-42 --print --file parse.go --at 12",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := x.check(); err != nil {
				return err
			}
			return a.session(cmd.Context(), forReading, args[0], func(log *eventlog.Log, session string) error {
				return a.files(cmd.Context(), log, session, &x)
			})
		},
	}, traits{section: secRead, verb: "reading", paged: true, content: true, args: []argument{sessionArg},
		exits: "0 done, 1 failed, or --print has no text, 2 wrong usage."})
	fileFlag(cmd, &x.file)
	x.at.flag(cmd, "at", atUsage)
	cmd.Flags().StringVar(&x.path, "path", allPaths, "all, or active: without orphaned events")
	completeFlag(cmd, "path", allPaths, activePath)
	cmd.Flags().BoolVar(&x.diff, "diff", false, "print each change as a diff")
	cmd.Flags().BoolVar(&x.print, "print", false, "print the text of the file of --file")
	return cmd
}

// fileFlag adds --file.
func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "file", "", "only this file: a `path`, or its end; a folder ends with /")
}

func (x *filesOptions) check() error {
	switch {
	case x.diff && x.print:
		return usagef("--diff prints the changes, --print the text: give one of them")
	case x.print && x.file == "":
		return usagef("--print needs --file, the file to print")
	}
	return cmp.Or(x.at.check(), checkPath(x.path))
}

// changes yields what the session did to the selected files.
func (x *filesOptions) changes(ctx context.Context, log *eventlog.Log, session string) iter.Seq2[files.Change, error] {
	return func(yield func(files.Change, error) bool) {
		to, err := x.at.seq(ctx, log, session)
		if err != nil {
			yield(files.Change{}, err)
			return
		}
		events := eventlog.Between(0, to)
		if x.path == activePath {
			events = events.OnPath()
		}
		for c, err := range files.Of(ctx, log, session, events, formats.FileTools) {
			if (err != nil || x.has(&c)) && !yield(c, err) {
				return
			}
		}
	}
}

// has reports whether --file selects a change.
func (x *filesOptions) has(c *files.Change) bool {
	return x.file == "" || c.Path != "" && files.Matches(x.file, c.Path) || c.To != "" && files.Matches(x.file, c.To)
}

func (a *app) files(ctx context.Context, log *eventlog.Log, session string, x *filesOptions) error {
	info, err := projection.Load(ctx, log, session, projection.Info())
	if err != nil {
		return err
	}
	folder := info.State.CWD
	if x.diff {
		return a.fileDiffs(x.changes(ctx, log, session), folder)
	}
	list := fileList{session: session, folder: folder}
	for c, err := range x.changes(ctx, log, session) {
		if err != nil {
			return err
		}
		list.Add(&c)
	}
	if x.print {
		return a.printFile(&list, x.file)
	}
	list.separate(ctx, log)
	err = printRows(a, list.Files, func(p *printer) { p.files(&list) })
	if err == nil && len(list.Files) == 0 && x.file != "" {
		return fmt.Errorf("the session did nothing with a file named %s; logtool files %s lists its files", clean(x.file), shellWord(clean(session)))
	}
	if err == nil && len(list.Files) == 0 {
		a.note("nothing to list: the tools of the session%s read and changed no file%s", ofFormat(info.State.Source.Format), list.footer())
	}
	return err
}

// ofFormat names the format of a session in a note.
func ofFormat(format string) string {
	if format == "" {
		return ""
	}
	return " (" + clean(format) + ")"
}

// printFile prints the text of the one file in a list.
func (a *app) printFile(list *fileList, name string) error {
	switch {
	case len(list.Files) == 0:
		return fmt.Errorf("the session did nothing with a file named %s", clean(name))
	case len(list.Files) > 1:
		var paths []string
		for _, row := range list.Files {
			paths = append(paths, row.Path)
		}
		return usagef("--file %s fits %s: give more of the path", clean(name), someOf(paths, 5))
	}
	row := list.Files[0]
	if row.Text != files.TextKnown {
		return fmt.Errorf("%s is %s at that event: the log does not have its text", clean(row.Path), row.Text)
	}
	if a.json {
		return a.answer(fileText{row.Path, row.State.Text}, nil)
	}
	p := a.printer()
	for line := range strings.Lines(row.State.Text) {
		text, ended := strings.CutSuffix(line, "\n")
		if p.Terminal {
			text = clean(text)
		}
		if p.Printf("%s", text); ended {
			p.Printf("\n")
		}
	}
	return p.Flush()
}

// fileText is the text of a file with --json.
type fileText struct {
	Path string `json:"path"`
	Text string `json:"text"`
}
