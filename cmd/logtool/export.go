package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
)

func (a *app) exportCommand() *cobra.Command {
	var format, file string
	var all bool
	cmd := &cobra.Command{
		Use:   "export [SESSION...]",
		Short: "Write sessions as JSONL that import reads back with every hash kept",
		Long: `Write the lines of sessions, what their forks rest on first, bodies inlined.
logtool import reads such a stream back and keeps ids, seqs and hashes.`,
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
			if format != "jsonl" {
				return usagef("--format is jsonl, not %q", format)
			}
			return a.reading(func(log *eventlog.Log) error { return a.export(cmd.Context(), log, args, all, file) })
		},
	}
	cmd.Flags().StringVar(&format, "format", "jsonl", "the format to write: jsonl")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this file instead of standard output")
	cmd.Flags().BoolVar(&all, "all", false, "export all sessions")
	return cmd
}

func (a *app) export(ctx context.Context, log *eventlog.Log, args []string, all bool, file string) error {
	sessions, err := a.sessions(ctx, log, args, all)
	if err != nil {
		return err
	}
	return a.output(file, func(w io.Writer) error {
		return log.Export(ctx, w, sessions...)
	})
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
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	if err := buffered(temp, f); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(temp.Name(), file); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

// overwrite runs f on a file that is no regular one, such as a named pipe.
func (a *app) overwrite(file string, f func(io.Writer) error) error {
	w, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write %w", err)
	}
	return errors.Join(buffered(w, f), w.Close())
}

func buffered(w io.Writer, f func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 256<<10)
	if err := f(b); err != nil {
		return err
	}
	return b.Flush()
}
