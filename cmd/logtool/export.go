package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/transfer"
)

// exporting is what is exported, and how.
type exportOptions struct {
	all    bool
	format string
	path   string // all or active; empty is what the format has
	file   string
	model  string
}

func (a *app) exportCommand() *cobra.Command {
	var x exportOptions
	cmd := &cobra.Command{
		Use:   "export [SESSION...]",
		Short: "Write sessions: as JSONL that import reads back, for other programs, or to be read",
		Long: `Write sessions, bodies inlined, in one of these formats:

  jsonl      the lines of the sessions, what their forks rest on first; import
             reads them back and keeps ids, seqs and hashes
  openai, responses, anthropic
             the list of messages that the model sees, as a request to OpenAI's
             Chat Completions or Responses or to Anthropic's Messages; a line
             for each session
  markdown   to be read: turns, messages, calls with their results
  html       the same as a page that needs no other file, no script, no network

Several sessions as markdown or html go into a folder, a file for each; so do
lists of messages where -o names a folder.

Hashes cover what was rewound, too, so jsonl has it unless --path is active: then
it is for other programs, and cannot be imported. It has, of each session, the
events of its active path, for a fork from the beginning, as show --json prints
them with the session in front. Markdown and html leave it out unless --path is
all: then they mark it.`,
		Example: `  logtool export order-42 -o order-42.jsonl
  logtool export order-42 --format html -o order-42.html
  logtool export --all --format markdown -o notes/
  logtool export --all --path active | jq -r 'select(.type == "message_added") | .data'`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case x.all && len(args) > 0:
				return usagef("--all exports every session: name none beside it")
			case !x.all && len(args) == 0:
				return usagef("name the sessions to export, or give --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := x.check(); err != nil {
				return err
			}
			if f := exportFormats[x.format]; a.json && f.write != nil && !f.isList {
				return usagef("--format %s is no JSON: leave out --json", x.format)
			}
			return a.reading(func(log *eventlog.Log) error { return a.export(cmd.Context(), log, args, x) })
		},
	}
	cmd.Flags().StringVar(&x.format, "format", "jsonl", "jsonl, openai, responses, anthropic, markdown or html")
	cmd.Flags().StringVarP(&x.file, "output", "o", "", "write to this file, or into this folder, instead of standard output")
	cmd.Flags().BoolVar(&x.all, "all", false, "export all sessions")
	cmd.Flags().StringVar(&x.path, "path", "", "all, with what was rewound, or active, without it")
	cmd.Flags().StringVar(&x.model, "model", "", "of lists of messages, the model they are for")
	return cmd
}

func (x *exportOptions) check() error {
	switch f, known := exportFormats[x.format]; {
	case !known:
		return usagef("--format is jsonl, openai, responses, anthropic, markdown or html, not %q", x.format)
	case x.path != "" && x.path != allPaths && x.path != activePath:
		return usagef("--path is all or active, not %q", x.path)
	case f.isList && x.path == allPaths:
		return usagef("--format %s is what the model sees, which has nothing that was rewound", x.format)
	case !f.isList && x.model != "":
		return usagef("--model is for lists of messages, not for --format %s", x.format)
	}
	return nil
}

func (a *app) export(ctx context.Context, log *eventlog.Log, args []string, x exportOptions) error {
	sessions, err := a.sessions(ctx, log, args, x.all)
	if err != nil {
		return err
	}
	f := exportFormats[x.format]
	folder := isFolder(x.file)
	switch {
	case f.write == nil && folder:
		return usagef("--format %s goes to one file: %s is a folder", x.format, x.file)
	case f.write == nil:
		return a.output(x.file, func(w io.Writer) error { return exportLines(ctx, log, w, sessions, x.path) })
	case folder:
		return a.exportInto(ctx, log, sessions, x)
	case len(sessions) > 1 && !f.isList:
		return usagef("%s as %s: name a folder for them with -o, as in -o pages/", count(int64(len(sessions)), "session"), x.format)
	}
	return a.output(x.file, func(w io.Writer) error {
		for _, session := range sessions {
			if err := f.write(ctx, w, log, session, x); err != nil {
				return fmt.Errorf("export session %q: %w", session, err)
			}
		}
		return nil
	})
}

// exportLines writes events.
func exportLines(ctx context.Context, log *eventlog.Log, w io.Writer, sessions []string, path string) error {
	if path == activePath {
		return exportActive(ctx, log, w, sessions)
	}
	return transfer.Export(ctx, log, w, sessions...)
}

// onPath is an event of an active path that was exported. What it begins with
// tells import that it is no line of a log.
type pathRow struct {
	Of    string `json:"active_path_of"`
	eventRow `json:",inline"`
}

// activePathMark is how an export of active paths begins.
const activePathMark = `{"active_path_of`

func exportActive(ctx context.Context, log *eventlog.Log, w io.Writer, sessions []string) error {
	for _, session := range sessions {
		for e, err := range log.Read(ctx, session, eventlog.All().OnPath()) {
			if err != nil {
				return fmt.Errorf("export session %q: %w", session, err)
			}
			if err := json.MarshalWrite(w, pathRow{session, newEventRow(&e)}, json.Deterministic(true)); err != nil {
				return fmt.Errorf("export session %q: event %d: %w", session, e.Seq, err)
			}
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// output runs f on standard output, or on a file that takes its name only when
// all is written.
func (a *app) output(file string, f func(io.Writer) error) error {
	if file == "" || file == "-" {
		return buffered(a.out, f)
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return a.overwrite(file, f)
	}
	temp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return unwritten(file, err)
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	if err := buffered(temp, f); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return unwritten(file, err)
	}
	if err := os.Rename(temp.Name(), file); err != nil {
		return unwritten(file, err)
	}
	return nil
}

// overwrite runs f on a file that is no regular one, such as a named pipe.
func (a *app) overwrite(file string, f func(io.Writer) error) error {
	w, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return unwritten(file, err)
	}
	return errors.Join(buffered(w, f), w.Close())
}

// unwritten says why a file could not be written, without the name that it had
// meanwhile.
func unwritten(file string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("write %s: %w", file, err)
}

func buffered(w io.Writer, f func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 256<<10)
	if err := f(b); err != nil {
		return err
	}
	return b.Flush()
}
