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
)

func (a *app) exportCommand() *cobra.Command {
	var format, file, path string
	var all bool
	cmd := &cobra.Command{
		Use:   "export [SESSION...]",
		Short: "Write sessions as JSONL that import reads back with every hash kept",
		Long: `Write the lines of sessions, what their forks rest on first, bodies inlined.
logtool import reads such a stream back and keeps ids, seqs and hashes.

Hashes cover what was rewound, too. --path active leaves that out, and writes for
other programs: of each session the events of its active path, for a fork from
the beginning, as show --json prints them with the session in front. Such a
stream cannot be imported.`,
		Example: `  logtool export order-42 -o order-42.jsonl
  logtool export --all --path active | jq -r 'select(.type == "message_added") | .data'`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return usagef("--all exports every session: name none beside it")
			case !all && len(args) == 0:
				return usagef("name the sessions to export, or give --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case format != "jsonl":
				return usagef("--format is jsonl, not %q", format)
			case path != allPaths && path != activePath:
				return usagef("--path is all or active, not %q", path)
			}
			return a.reading(func(log *eventlog.Log) error { return a.export(cmd.Context(), log, args, all, path, file) })
		},
	}
	cmd.Flags().StringVar(&format, "format", "jsonl", "the format to write: jsonl")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this file instead of standard output")
	cmd.Flags().BoolVar(&all, "all", false, "export all sessions")
	cmd.Flags().StringVar(&path, "path", allPaths, "all, which import reads, or active, which leaves out what was rewound")
	return cmd
}

func (a *app) export(ctx context.Context, log *eventlog.Log, args []string, all bool, path, file string) error {
	sessions, err := a.sessions(ctx, log, args, all)
	if err != nil {
		return err
	}
	return a.output(file, func(w io.Writer) error {
		if path == activePath {
			return exportActive(ctx, log, w, sessions)
		}
		return log.Export(ctx, w, sessions...)
	})
}

// onPath is an event of an active path that was exported. What it begins with
// tells import that it is no line of a log.
type onPath struct {
	Of    string `json:"active_path_of"`
	shown `json:",inline"`
}

// activePathMark is how an export of active paths begins.
const activePathMark = `{"active_path_of`

func exportActive(ctx context.Context, log *eventlog.Log, w io.Writer, sessions []string) error {
	for _, session := range sessions {
		for e, err := range log.ActivePath(ctx, session) {
			if err != nil {
				return fmt.Errorf("export session %q: %w", session, err)
			}
			if err := json.MarshalWrite(w, onPath{session, newShown(&e)}, json.Deterministic(true)); err != nil {
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
