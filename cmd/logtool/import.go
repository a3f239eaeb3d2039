package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/upkeep/transfer"
)

func (a *app) importCommand() *cobra.Command {
	var x importRun
	cmd := a.command(&cobra.Command{
		Use:   "import [PATH...]",
		Short: "Import transcripts of other programs, or an export of logtool",
		Long: `Import transcripts from files, or from folders with all transcripts in them.

Formats: ` + strings.Join(formatNames()[1:], ", ") + `.

stream is the output of codex exec --json and claude --output-format stream-json.
messages are requests and responses of OpenAI and Anthropic, and ShareGPT. cline is
Roo Code, too. jsonl is the output of logtool export: ids, seqs and hashes are kept.

Without PATH, import lists the folders of programs that exist; --known imports them.
"-" is standard input, and quoted patterns ('**/*.jsonl') are expanded. Links in
folders are not followed. In folders and patterns, other files are skipped; a named
file that is not a transcript is rejected.

A second import adds only new records, and nothing of erased ones. The table counts
records read, events written, records present already, raw, skipped (their session
has not begun) and rejected.
--follow then imports what programs write into the files and folders, each record once.

A session that rm or store retire removed from the log stays away, also when its file
has grown, and so do new sub-agents of it. --again brings them back.
A record that redact may have erased stops the import of its session: the file has
changed before or beside it, or is a copy. --even-erased stores such records.

--secrets looks for secrets in the records: warn stores and lists them, mask stores
[secret:RULE] in their place, refuse stops the import of the file. An export of
logtool keeps its lines, and is not screened.`,
		Example: "  logtool import ~/.claude/projects\n  logtool import --known --follow",
		Args:    between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.app, x.args = a, args
			return x.run(cmd.Context())
		},
	}, traits{section: secMove, verb: "importing", args: []argument{fileArg, more}, exits: "0 done, 1 failed, or a record is rejected, 2 wrong usage."})
	cmd.Flags().StringVar(&x.format, "format", anyFormat, "the format of the files: "+anyFormat+", "+ownFormat+", or a program of the list")
	completeFlag(cmd, "format", formatNames()...)
	cmd.Flags().BoolVar(&x.known, "known", false, "import the folders of programs that exist")
	cmd.Flags().BoolVar(&x.dry, "dry-run", false, "list the files to import, and import nothing")
	cmd.Flags().BoolVar(&x.own.ApplyRedactions, "apply-redactions", false, "erase events that the source has redacted")
	cmd.Flags().BoolVar(&x.own.Again, "again", false, "import sessions that were removed, too")
	cmd.Flags().BoolVar(&x.own.EvenErased, "even-erased", false, "store records that may be ones that were erased, too")
	cmd.Flags().BoolVarP(&x.follow, "follow", "f", false, "import what programs write, until interrupted")
	x.screen.flag(cmd)
	cmd.Flags().BoolVarP(&x.verbose, "verbose", "v", false, "list every file and every rejected record")
	return cmd
}

const (
	anyFormat = "auto"
	ownFormat = "jsonl" // of export
)

// formatNames are the values of --format.
func formatNames() []string {
	return slices.Concat([]string{anyFormat}, foreignFormats(), []string{ownFormat})
}

// importRun is one run of import.
type importRun struct {
	app     *app
	args    []string
	format  string
	known   bool
	dry     bool
	verbose bool
	follow  bool
	own     transfer.Options
	screen  screening
}

func (x *importRun) run(ctx context.Context) error {
	return x.app.progress.Run(func() error { return x.find(ctx) })
}

// find finds the files and imports them.
func (x *importRun) find(ctx context.Context) error {
	if err := x.screen.check(); err != nil {
		return err
	}
	formats, err := x.formats()
	if err != nil {
		return err
	}
	if x.known || len(x.args) == 0 {
		known, err := x.app.known(ctx, formats, !x.known)
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
	var watched *watch
	if x.follow {
		if watched, err = x.watch(in, formats); err != nil {
			return err
		}
	}
	if x.dry {
		found, err := interop.Find(ctx, formats, in.paths, in.opts)
		if err != nil {
			return in.rename(err)
		}
		return x.preview(in, found)
	}
	if x.screen.on() && len(in.own) > 0 {
		return usagef("%s is an export of logtool, whose lines keep their hashes: import it without --secrets; logtool store scan lists its secrets", in.own[0])
	}
	x.app.screen = &x.screen
	return x.app.writing(func(log *eventlog.Log) error {
		in.opts.Log, in.opts.Again, in.opts.EvenErased, in.opts.Whole = log, x.own.Again, x.own.EvenErased, x.screen.on()
		found, err := interop.Find(ctx, formats, in.paths, in.opts)
		if err != nil {
			return in.rename(err)
		}
		x.app.boundRecords(found.Files())
		if err := opens(ctx, log); err != nil {
			return err
		}
		err = x.all(ctx, log, in, found)
		if x.follow && ctx.Err() == nil {
			if errors.Is(err, errNoFiles) {
				x.app.note("no files yet: waiting for them")
			} else {
				x.app.complain(err) // the files may change
			}
			err = watched.follow(ctx, log)
		}
		x.screen.report(x.app)
		return err
	})
}

// opens reports an error of the store before an import reports it for a file.
func opens(ctx context.Context, log *eventlog.Log) error {
	for _, err := range log.Sessions(ctx) {
		return err
	}
	return nil
}

// formats are the formats that --format allows.
func (x *importRun) formats() ([]interop.Format, error) {
	switch x.format {
	case anyFormat:
		return formats.All(), nil
	case ownFormat:
		return nil, nil
	}
	for _, f := range formats.All() {
		if f.Name() == x.format {
			return []interop.Format{f}, nil
		}
	}
	return nil, usagef("unknown format %q: --format is one of %s", x.format, strings.Join(formatNames(), ", "))
}

// all imports the exports of logtool, then the transcripts, and prints a table.
func (x *importRun) all(ctx context.Context, log *eventlog.Log, in *inputs, found *interop.Found) error {
	var table interop.Table
	var failed []error
	for _, file := range in.own {
		row := file.adopt(ctx, log, x.own)
		if row.Err != nil {
			failed = append(failed, streamError{fmt.Errorf("import %s: %w", file, row.Err)})
		}
		table.Rows = append(table.Rows, row)
	}
	if ctx.Err() == nil {
		bar := newImportBar(x.app, found)
		t, err := found.Import(ctx, log, interop.Options{Progress: bar.file, Bytes: bar.bytes, Again: x.own.Again, EvenErased: x.own.EvenErased})
		t.Rows = append(table.Rows, t.Rows...)
		table = t
		failed = append(failed, err)
	}
	if len(table.Rows) > 0 || len(table.Skipped) > 0 || len(table.Links) > 0 {
		if err := x.app.printTable(&table, x.verbose); err != nil {
			return err
		}
		if note := x.app.expiry(&table); note != "" {
			x.app.note("%s", note)
		}
	}
	x.app.keepSums(ctx, log, &table)
	if err := importError(&table, errors.Join(failed...)); err != nil || x.format == anyFormat {
		return err
	}
	return skippedError(&table)
}

// keepSums puts the sums of the sessions that an import has changed into the catalog, so that the next
// list need not read them. It returns no error: a list reads the sessions without sums.
func (a *app) keepSums(ctx context.Context, log *eventlog.Log, table *interop.Table) {
	if _, ok := eventlog.As[eventlog.Cataloger](log.Store()); !ok {
		return
	}
	var sessions []string
	heads := map[string]event.Head{}
	for _, row := range table.Rows {
		if row.Events == 0 {
			continue
		}
		for _, id := range row.Sessions {
			if _, seen := heads[id]; seen {
				continue
			}
			head, err := log.Head(ctx, id)
			if heads[id] = head; err == nil {
				sessions = append(sessions, id)
			}
		}
	}
	if len(sessions) == 0 {
		return
	}
	defer a.progress.Say(nil)
	step := a.steps(len(sessions))
	catalog := stats.NewCatalog(log, anySummary())
	at := func(i int) (string, event.Head) { return sessions[i], heads[sessions[i]] }
	if catalog.Each(ctx, len(sessions), at, func(int, *stats.Summary) { step() }) == nil {
		catalog.Flush(ctx)
	}
}

// errNoFiles reports folders without files.
var errNoFiles = errors.New("nothing to import: there are no files; see logtool import --help")

// importError is err, or an error for the rows of the table.
func importError(table *interop.Table, err error) error {
	stopped := 0
	for i := range table.Rows {
		if table.Rows[i].Err != nil {
			stopped++
		}
	}
	total := table.Total()
	bad := len(total.Rejected)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case stopped > 1 && errors.Is(err, interop.ErrErased):
		return fmt.Errorf("the import of %s stopped, as listed; repair damaged files, leave out files of programs that logtool does not know, and import again; --even-erased stores what may be erased", count(stopped, "file"))
	case stopped > 1:
		return fmt.Errorf("the import of %s stopped, as listed; repair damaged files, leave out files of programs that logtool does not know, and import again", count(stopped, "file"))
	case err != nil:
		return err
	case bad > 0 && total.Events+total.Present == 0:
		return fmt.Errorf("%s rejected, as listed; nothing was imported", count(bad, "record"))
	case bad > 0:
		return fmt.Errorf("%s rejected, as listed; the rest is imported", count(bad, "record"))
	case len(table.Rows) > 0:
		return nil
	case len(table.Skipped) == 0 && len(table.Links) > 0:
		return errors.New("nothing to import: links in folders are not followed; name the links or their targets")
	case len(table.Skipped) == 0:
		return errNoFiles
	case holdsLog(table.Skipped):
		return errors.New("nothing to import: this is a log of logtool; name it with --store, or copy it with logtool store convert")
	default:
		return fmt.Errorf("no transcript of a known format among %s; see logtool import --help", count(len(table.Skipped), "file"))
	}
}

// skippedError reports that the files do not have the format of --format: all records
// are skipped.
func skippedError(table *interop.Table) error {
	all := table.Total()
	if all.Skipped == 0 || all.Skipped < all.Records || len(all.LeftOut) > 0 {
		return nil
	}
	return fmt.Errorf("nothing was imported: %s without a message in %s, skipped; leave out --format to detect the format",
		count(all.Skipped, "record"), table.Rows[0].Format)
}
