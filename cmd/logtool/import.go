package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/gemini"
	"github.com/convlog/convlog/interop/lists"
	"github.com/convlog/convlog/interop/pi"
)

// formats are the foreign formats that import reads. The first that knows a file
// takes it: lists of messages, which many files are, come last.
var formats = []interop.Format{claude.Format{}, codex.Format{}, pi.Format{}, gemini.Format{}, lists.Format{}}

func (a *app) importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import PATH...",
		Short: "Import transcripts of other programs, or what export wrote",
		Long: `Import transcripts: files, or folders with all transcripts in them. Formats:

  Claude Code  ~/.claude/projects
  Codex        ~/.codex/sessions
  pi           ~/.pi/agent/sessions
  Gemini CLI   ~/.gemini/tmp/*/chats
  messages     lists of messages as OpenAI's Chat Completions and Responses and
               Anthropic's Messages have them: JSON, or lines of it
  logtool      the JSONL that logtool export writes, whose ids, seqs and hashes
               are verified and kept ("-" reads it from standard input)

Importing again adds only what is new.

Records that cannot be read are refused and listed, the rest is imported, and
the exit code is 1.`,
		Example: `  logtool import ~/.claude/projects
  logtool export --all | logtool --store copy.db import -`,
		Args: between(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			own, foreign, err := a.sortPaths(args)
			if err != nil {
				return err
			}
			return a.writing(func(log *eventlog.Log) error { return a.importAll(cmd.Context(), log, own, foreign) })
		},
	}
}

// importAll imports what export wrote, then the transcripts, and prints a
// table of all of it.
func (a *app) importAll(ctx context.Context, log *eventlog.Log, own []ownFile, foreign []string) error {
	var table interop.Table
	var failed []error
	for _, file := range own {
		row := file.adopt(ctx, log)
		if row.Err != nil {
			failed = append(failed, streamError{fmt.Errorf("import %s: %w", file, row.Err)})
		}
		table.Rows = append(table.Rows, row)
	}
	if len(foreign) > 0 && ctx.Err() == nil {
		t, err := interop.Import(ctx, log, formats, foreign, interop.Options{})
		table.Rows, table.Skipped = append(table.Rows, t.Rows...), t.Skipped
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(table.Rows) > 0 || len(table.Skipped) > 0 {
		if err := a.printTable(&table); err != nil {
			return err
		}
	}
	return importError(&table, errors.Join(failed...))
}

// importError is what an import failed with: err, or what the table shows.
func importError(table *interop.Table, err error) error {
	stopped := 0
	for i := range table.Rows {
		if table.Rows[i].Err != nil {
			stopped++
		}
	}
	bad := len(table.Total().Refused)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case stopped > 1:
		return fmt.Errorf("the import of %s stopped, as listed; mend or leave them out and import again", count(int64(stopped), "file"))
	case err != nil:
		return err
	case bad > 0:
		return fmt.Errorf("%s refused, as listed; the rest is imported", count(int64(bad), "record"))
	case len(table.Rows) == 0 && len(table.Skipped) == 0:
		return errors.New("nothing to import: there are no files; see logtool import --help")
	case len(table.Rows) == 0:
		return fmt.Errorf("no transcript of a known format among %s; see logtool import --help", count(int64(len(table.Skipped)), "file"))
	}
	return nil
}

// ownFile is a stream that export wrote.
type ownFile struct {
	name string
	in   io.Reader // nil: the file of that name
}

func (f ownFile) String() string {
	if f.in != nil {
		return "standard input"
	}
	return f.name
}

// sortPaths tells what export wrote from everything else.
func (a *app) sortPaths(paths []string) (own []ownFile, foreign []string, err error) {
	for _, path := range paths {
		if path == "-" {
			in := bufio.NewReaderSize(a.in, 1<<20)
			head, err := in.Peek(headBytes)
			if len(head) == 0 && errors.Is(err, io.EOF) {
				return nil, nil, errors.New("nothing on standard input")
			}
			switch {
			case bytes.HasPrefix(head, []byte(activePathMark)):
				return nil, nil, pathOnly("standard input")
			case !writtenByExport(head):
				return nil, nil, errors.New("standard input is not what logtool export wrote; name a transcript's file instead")
			}
			own = append(own, ownFile{"-", in})
			continue
		}
		head, err := beginning(path)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("import: %w", err)
		case bytes.HasPrefix(head, []byte(activePathMark)):
			return nil, nil, pathOnly(path)
		case writtenByExport(head):
			own = append(own, ownFile{name: path})
		default:
			foreign = append(foreign, path)
		}
	}
	return own, foreign, nil
}

const headBytes = 16

// writtenByExport knows a stream of ours by its first bytes: an event, or a
// blob that the first event needs.
func writtenByExport(head []byte) bool {
	return bytes.HasPrefix(head, []byte(`{"crc":"`)) || bytes.HasPrefix(head, []byte(`{"blob":"sha256`))
}

// pathOnly refuses what export wrote with --path active.
func pathOnly(name string) error {
	return fmt.Errorf("%s holds active paths, without the hashes and what was rewound: export the sessions without --path, and import that", name)
}

// beginning reads the first bytes of a file; a folder has none.
func beginning(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return head[:n], nil
}

// adopt imports the stream, all that is readable before the first bad line.
func (f *ownFile) adopt(ctx context.Context, log *eventlog.Log) interop.Row {
	row := interop.Row{Path: f.name, Format: "jsonl"}
	in := f.in
	if in == nil {
		file, err := os.Open(f.name)
		if err != nil {
			row.Err = err
			return row
		}
		defer file.Close()
		in = file
	}
	adopted, err := log.Import(ctx, in)
	row.Err = err
	for _, s := range adopted {
		row.Records += int(s.Read)
		row.Imported += int(s.Stored)
		row.Present += int(s.Read - s.Stored)
		row.Events += int(s.Stored)
		row.Touch(s.Session)
	}
	return row
}

// imported is a row of the table as --json prints it.
type imported struct {
	File     string    `json:"file"`
	Format   string    `json:"format"`
	Records  int       `json:"records"`
	Events   int       `json:"events"`
	Present  int       `json:"present"`
	Raw      int       `json:"raw"`
	Held     int       `json:"held"`
	Refused  []refused `json:"refused"`
	Sessions []string  `json:"sessions"`
	Error    string    `json:"error,omitzero"`
}

// refused is a record that could not be read.
type refused struct {
	Line   int64  `json:"line"`
	Offset int64  `json:"offset"`
	Reason string `json:"reason"`
}

func newImported(row *interop.Row) imported {
	out := imported{
		File: row.Path, Format: row.Format, Records: row.Records, Events: row.Events, Present: row.Present,
		Raw: row.Raw, Held: row.Held, Refused: []refused{}, Sessions: row.Sessions,
	}
	for _, r := range row.Refused {
		out.Refused = append(out.Refused, refused(r))
	}
	if row.Err != nil {
		out.Error = row.Err.Error()
	}
	return out
}

func (a *app) printTable(table *interop.Table) error {
	p := a.printer()
	if !a.json {
		if err := withoutOnly(table).Print(p.w); err != nil {
			return err
		}
		return p.flush()
	}
	for i := range table.Rows {
		if err := p.value(newImported(&table.Rows[i])); err != nil {
			return err
		}
	}
	return p.flush()
}

// withoutOnly is the table without the error that is the only one: it is what the
// command ends with.
func withoutOnly(table *interop.Table) *interop.Table {
	stopped := 0
	short := interop.Table{Rows: slices.Clone(table.Rows), Skipped: table.Skipped}
	for i := range short.Rows {
		if short.Rows[i].Err != nil {
			short.Rows[i].Err = nil
			stopped++
		}
	}
	if stopped != 1 {
		return table
	}
	return &short
}
