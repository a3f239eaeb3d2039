package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
)

func (a *app) importCommand() *cobra.Command {
	var x importRun
	cmd := &cobra.Command{
		Use:   "import [PATH...]",
		Short: "Import transcripts of other programs, or what export wrote",
		Long: `Import transcripts: files, or folders with all transcripts in them. Formats:

  Claude Code  ~/.claude/projects
  Codex        ~/.codex/sessions
  pi           ~/.pi/agent/sessions
  Gemini CLI   ~/.gemini/tmp/*/chats
  OpenCode     ~/.local/share/opencode/storage, and what opencode export writes
  OpenHands    ~/.openhands/conversations and ~/.openhands/sessions; output.jsonl
               of evaluations, trajectories
  SWE-agent    *.traj; of mini-SWE-agent *.traj.json
  tau-bench    lists of attempts at tasks, and the results of tau2-bench
  Inspect      eval logs, packed (*.eval) or in JSON, each sample a session
  OASST        message trees of Open Assistant, each reply a branch
  Entire       transcript.jsonl, the compact transcripts of the Entire CLI
  messages     lists of messages as OpenAI's Chat Completions and Responses and
               Anthropic's Messages have them, and responses with their requests
               or without; ShareGPT's turns: JSON, or lines of it
  jsonl        what logtool export writes, whose ids, seqs and hashes are verified
               and kept

Without PATH it says which of these folders there are and what is in them;
--known imports them. "-" is standard input. Quoted patterns ('**/*.jsonl') are
expanded here. Links to files and folders are followed where they are named, not
in folders. What is no transcript is skipped in folders and by patterns, and
refused where it is named; --format says what it is.

Importing again adds only what is new. The table counts the records read, the
events written, the records that were present already, those kept raw, those held
back until their session begins, and those refused, which are listed by line: the
rest is imported, and the exit code is 1.`,
		Example: `  logtool import
  logtool import ~/.claude/projects
  zcat old.jsonl.gz | logtool import -
  logtool export --all | logtool --store copy.db import -`,
		Args: between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.app, x.args = a, args
			return x.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&x.format, "format", anyFormat, "what the files are: "+strings.Join(formatNames(), ", "))
	cmd.Flags().BoolVar(&x.known, "known", false, "import the folders where programs keep their transcripts")
	cmd.Flags().BoolVarP(&x.dry, "dry-run", "n", false, "say what would be imported, and import nothing")
	cmd.Flags().BoolVarP(&x.verbose, "verbose", "v", false, "list every file and every record refused, however many")
	return cmd
}

const (
	anyFormat = "auto"
	ownFormat = "jsonl" // what export writes
)

// formatNames are what --format takes.
func formatNames() []string {
	return slices.Concat([]string{anyFormat}, formats.Names(), []string{ownFormat})
}

// importing is what the import command was told.
type importRun struct {
	app     *app
	args    []string
	format  string
	known   bool
	dry     bool
	verbose bool
}

func (x *importRun) run(ctx context.Context) error {
	formats, err := x.formats()
	if err != nil {
		return err
	}
	if x.known || len(x.args) == 0 {
		known, err := x.app.known(ctx, formats)
		if err != nil || !x.known {
			return errors.Join(err, x.app.printKnown(known))
		}
		x.args = append(x.args, dirsOf(known)...)
	}
	in, err := x.app.inputs(x.args, x.format)
	defer in.close()
	if err != nil {
		return err
	}
	found, err := interop.Find(ctx, formats, in.paths, in.opts)
	if err != nil {
		return in.rename(err)
	}
	if x.dry {
		return x.preview(in, found)
	}
	return x.app.writing(func(log *eventlog.Log) error {
		if err := opens(ctx, log); err != nil {
			return err
		}
		return x.all(ctx, log, in, found)
	})
}

// opens says why a store cannot be opened, before a file is blamed for it.
func opens(ctx context.Context, log *eventlog.Log) error {
	for _, err := range log.Sessions(ctx) {
		return err
	}
	return nil
}

// formats are those that --format allows.
func (x *importRun) formats() ([]interop.Format, error) {
	switch x.format {
	case anyFormat:
		return formats.All(), nil
	case ownFormat:
		return nil, nil
	}
	if f, ok := formats.ByName(x.format); ok {
		return []interop.Format{f}, nil
	}
	return nil, usagef("unknown format %q: --format is one of %s", x.format, strings.Join(formatNames(), ", "))
}

// all imports what export wrote, then the transcripts, and prints a table of all
// of it.
func (x *importRun) all(ctx context.Context, log *eventlog.Log, in *inputs, found *interop.Found) error {
	var table interop.Table
	var failed []error
	for _, file := range in.own {
		row := file.adopt(ctx, log)
		if row.Err != nil {
			failed = append(failed, streamError{fmt.Errorf("import %s: %w", file, row.Err)})
		}
		table.Rows = append(table.Rows, row)
	}
	if ctx.Err() == nil {
		bar := newImportBar(x.app, found)
		t, err := found.Import(ctx, log, interop.Options{Progress: bar.file, Bytes: bar.bytes})
		bar.clear()
		t.Rows = append(table.Rows, t.Rows...)
		table = t
		failed = append(failed, err)
	}
	if len(table.Rows) > 0 || len(table.Skipped) > 0 || len(table.Links) > 0 {
		if err := x.app.printTable(&table, x.verbose); err != nil {
			return err
		}
	}
	if err := importError(&table, errors.Join(failed...)); err != nil || x.format == anyFormat {
		return err
	}
	return heldError(&table)
}

// importError is what an import failed with: err, or what the table shows.
func importError(table *interop.Table, err error) error {
	stopped := 0
	for i := range table.Rows {
		if table.Rows[i].Err != nil {
			stopped++
		}
	}
	total := table.Total()
	bad := len(total.Refused)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case stopped > 1:
		return fmt.Errorf("the import of %s stopped, as listed; mend or leave them out and import again", count(int64(stopped), "file"))
	case err != nil:
		return err
	case bad > 0 && total.Events+total.Present == 0:
		return fmt.Errorf("%s refused, as listed; nothing was imported", count(int64(bad), "record"))
	case bad > 0:
		return fmt.Errorf("%s refused, as listed; the rest is imported", count(int64(bad), "record"))
	case len(table.Rows) > 0:
		return nil
	case len(table.Skipped) == 0 && len(table.Links) > 0:
		return errors.New("nothing to import: links in folders are not followed; name them, or what they lead to")
	case len(table.Skipped) == 0:
		return errors.New("nothing to import: there are no files; see logtool import --help")
	case holdsLog(table.Skipped):
		return errors.New("nothing to import: this is a log of logtool; name it with --store, or copy it with logtool convert")
	default:
		return fmt.Errorf("no transcript of a known format among %s; see logtool import --help", count(int64(len(table.Skipped)), "file"))
	}
}

// heldError says that files which --format was given for are of another one: no
// record of them is a line of conversation in that.
func heldError(table *interop.Table) error {
	all := table.Total()
	if all.Held == 0 || all.Held < all.Records {
		return nil
	}
	return fmt.Errorf("nothing was imported: %s without a line of conversation in %s, held back until one comes; leave out --format to have the format found",
		count(int64(all.Held), "record"), table.Rows[0].Format)
}
