package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/internal/terminal"
	"github.com/convlog/convlog/interop/html"
	"github.com/convlog/convlog/interop/markdown"
	"github.com/convlog/convlog/upkeep/transfer"
)

// exportOptions choose the sessions to export and the format.
type exportOptions struct {
	all     bool
	below   bool
	format  string
	path    string // allPaths or activePath; empty for the default of the format
	file    string
	model   string
	turns   turnRange
	secrets bool     // --mask-secrets, of a bundle
	paths   bool     // --mask-paths
	texts   []string // --mask
	// pages are the sessions that get a page in the folder; nil if there are no other pages.
	pages map[string]bool
	priceFlag
}

func (a *app) exportCommand() *cobra.Command {
	var x exportOptions
	cmd := a.command(&cobra.Command{
		Use:   "export [SESSION...]",
		Short: "Write sessions as JSONL, for other programs, or as pages to read",
		Long: `Write sessions with their bodies in one of these formats:

  jsonl      the lines of the sessions, the parents of forks first; import reads
             them and keeps ids, seqs and hashes. --below adds the sessions below:
             sub-agent runs, forks and copies, at all depths
  bundle     the same with --below, compressed; with masks under new ids
  openai, responses, anthropic
             the messages that the model sees, in the form of a request to OpenAI's
             Chat Completions or Responses or to Anthropic's Messages; one line
             per session
  markdown   pages to read: turns, messages, calls with their results
  html       the same as a page without other files, scripts or network

Several pages need a folder: -o names it, and each session gets a file there. With
--all, index.html lists the html pages, and they link sub-agents.

jsonl includes orphaned (rewound) events, because hashes cover them. With --path
active it has only the events of active paths, in the form of show --json: other
programs can read this, and import cannot. Pages leave orphaned events out, or mark
them with --path all.

--turn exports some turns, in every format but the jsonl that import reads. On
pages, ~ marks list prices of answers without a cost.`,
		Example: "  logtool export --all --format markdown -o notes/\n  logtool export --below order-42 | logtool --store other import -",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case x.all && len(args) > 0:
				return usagef("--all exports every session: name none beside it")
			case x.turns.text != "" && len(args) != 1:
				return usagef("--turn is for one session: name it")
			case !x.all && len(args) == 0:
				return usagef("name the sessions to export, or give --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := x.check(); err != nil {
				return err
			}
			masks := a.mask || x.paths || len(x.texts) > 0
			if masks && x.format == "jsonl" && x.path != activePath {
				return usagef("--format jsonl has the stored lines, whose hashes cover the text: leave out the masks, or give --path active or another format; a bundle with masks has new hashes")
			}
			if x.format == bundleFormat && (x.file == "" || x.file == "-") && a.onTerminal() {
				return usagef("a bundle is compressed: name a file for it with -o")
			}
			if f := exportFormats[x.format]; a.json && (f.write != nil && !f.isList || x.format == bundleFormat) {
				return usagef("--format %s is no JSON: leave out --json", x.format)
			}
			if masks && x.format == bundleFormat {
				x.secrets, a.mask = a.mask, false
				return a.reading(func(log *eventlog.Log) error { return a.exportMaskedBundle(cmd.Context(), log, args, x) })
			}
			return a.reading(func(log *eventlog.Log) error {
				if x.paths || len(x.texts) > 0 {
					return a.exportMasked(cmd.Context(), log, args, x)
				}
				return a.export(cmd.Context(), log, args, x)
			})
		},
	}, traits{section: secMove, verb: "exporting", content: true, args: []argument{sessionArg, more}})
	cmd.Flags().StringVar(&x.format, "format", "jsonl", "jsonl, bundle, openai, responses, anthropic, markdown or html")
	completeFlag(cmd, "format", slices.Sorted(maps.Keys(exportFormats))...)
	cmd.Flags().StringVarP(&x.file, "output", "o", "", "write to this file, or into this folder, instead of standard output")
	cmd.Flags().BoolVar(&x.all, "all", false, "export all sessions but convlog:store; jsonl alone has the states of programs")
	cmd.Flags().BoolVar(&x.below, "below", false, "with jsonl: export the sessions below too: runs, forks and copies")
	cmd.Flags().StringVar(&x.path, "path", "", "all, with orphaned events, or active, without them")
	completeFlag(cmd, "path", allPaths, activePath)
	cmd.Flags().StringVar(&x.model, "for-model", "", "the target model of a list of messages")
	x.turns.flag(cmd)
	cmd.Flags().BoolVar(&x.paths, "mask-paths", false, maskPathsUsage)
	cmd.Flags().StringArrayVar(&x.texts, "mask", nil, "show [masked] for this `text`, in any case; repeatable")
	x.priceFlag.flag(cmd)
	return cmd
}

func (x *exportOptions) check() error {
	if slices.Contains(x.texts, "") {
		return usagef("--mask needs a text")
	}
	switch f, known := exportFormats[x.format]; {
	case !known:
		return usagef("--format is jsonl, bundle, openai, responses, anthropic, markdown or html, not %q", x.format)
	case x.path == "":
	case x.format == bundleFormat:
		return usagef("--format bundle has all events: leave out --path")
	case f.isList && x.path == allPaths:
		return usagef("--format %s has the messages that the model sees, without orphaned events", x.format)
	default:
		if err := checkPath(x.path); err != nil {
			return err
		}
	}
	if x.below && (x.format != "jsonl" || x.path == activePath) {
		return usagef("--below is for --format jsonl with all events, which import reads: leave out --below, or the other flags")
	}
	if x.turns.text != "" && x.format == bundleFormat {
		return usagef("--format bundle has whole sessions: leave out --turn")
	}
	if x.turns.text != "" && x.format == "jsonl" && x.path != activePath {
		return usagef("--turn with --format jsonl needs --path active: import reads whole sessions only")
	}
	if err := x.turns.check(); err != nil {
		return err
	}
	if x.model != "" && !exportFormats[x.format].isList {
		return usagef("--model is for lists of messages, not for --format %s", x.format)
	}
	if x.priceFile != "" && !slices.Contains(pageFormats, x.format) {
		return usagef("--prices is for pages, not for --format %s", x.format)
	}
	return x.read()
}

// exportFormat is a format of export.
type exportFormat struct {
	suffix string // of files in a folder
	isList bool   // a list of messages: one line per session
	// write writes one session; nil for jsonl, where sessions share events.
	write func(ctx context.Context, w io.Writer, log *eventlog.Log, session string, x exportOptions) error
}

// bundleFormat is jsonl with the sessions below, compressed.
const bundleFormat = "bundle"

var exportFormats = map[string]exportFormat{
	"jsonl":      {},
	bundleFormat: {},
	"openai":     {suffix: ".json", isList: true, write: exportList},
	"responses":  {suffix: ".json", isList: true, write: exportList},
	"anthropic":  {suffix: ".json", isList: true, write: exportList},
	"markdown":   {suffix: ".md", write: exportMarkdown},
	"html":       {suffix: pageSuffix, write: exportHTML},
}

// pageFormats are the formats with estimates of costs.
var pageFormats = []string{"markdown", "html"}

func exportMarkdown(ctx context.Context, w io.Writer, log *eventlog.Log, session string, x exportOptions) error {
	events, err := x.events(ctx, log, session)
	if err != nil {
		return err
	}
	return markdown.Write(ctx, w, log, session, events, x.table)
}

func exportHTML(ctx context.Context, w io.Writer, log *eventlog.Log, session string, x exportOptions) error {
	events, err := x.events(ctx, log, session)
	if err != nil {
		return err
	}
	return html.Write(ctx, w, log, session, events, x.table, x.link)
}

// events are the events of a session for a page.
func (x *exportOptions) events(ctx context.Context, log *eventlog.Log, session string) (eventlog.Range, error) {
	from, to, err := x.turns.seqs(ctx, log, session)
	events := eventlog.Between(from, to)
	if x.path != allPaths {
		events = events.OnPath()
	}
	return events, err
}

// exportList writes the messages that the model sees on one line.
func exportList(ctx context.Context, w io.Writer, log *eventlog.Log, session string, x exportOptions) error {
	form := historyOptions{format: x.format, model: x.model, turns: x.turns}
	entries, err := historyOf(ctx, log, session, form)
	if err == nil {
		err = form.request(ctx, log, w, entries)
	}
	if err == nil {
		_, err = io.WriteString(w, "\n")
	}
	return err
}

// exportMasked exports sessions without some texts, or without the names of people and of places.
func (a *app) exportMasked(ctx context.Context, log *eventlog.Log, args []string, x exportOptions) error {
	log, err := maskTexts(log, x.texts)
	if err != nil {
		return err
	}
	if !x.paths {
		return a.export(ctx, log, args, x)
	}
	sessions, err := a.sessions(ctx, log, args, x.all)
	if err != nil {
		return err
	}
	m, err := maskPaths(ctx, log, sessions)
	if err != nil {
		return err
	}
	if err := a.export(ctx, m.log, args, x); err != nil {
		return err
	}
	a.masked(&m, "read the export before you share it: names of other people, hosts, repositories and folders below ~ are left")
	return nil
}

func (a *app) export(ctx context.Context, log *eventlog.Log, args []string, x exportOptions) error {
	sessions, err := a.sessions(ctx, log, args, x.all)
	if err != nil {
		return err
	}
	f := exportFormats[x.format]
	if x.all {
		a.progress.ReadsAll()
		sessions = slices.DeleteFunc(sessions, func(id string) bool { return id == engine.StoreSession }) // no import stores it
		if f.write != nil {                                                                               // conversations, for people or models
			if sessions, err = a.conversations(ctx, log); err != nil {
				return err
			}
		}
	}
	folder := isDir(x.file) || strings.HasSuffix(x.file, "/")
	switch {
	case f.write == nil && folder:
		return usagef("--format %s goes to one file: %s is a folder", x.format, x.file)
	case x.format == bundleFormat:
		return a.output(x.file, func(w io.Writer) error {
			packed := gzip.NewWriter(w)
			return errors.Join(a.exportTree(ctx, log, packed, sessions), packed.Close())
		})
	case x.below:
		return a.output(x.file, func(w io.Writer) error { return a.exportTree(ctx, log, w, sessions) })
	case f.write == nil:
		return a.output(x.file, func(w io.Writer) error { return exportLines(ctx, log, w, sessions, x) })
	case len(sessions) > 1 && !f.isList && !folder:
		return usagef("%s as %s: name a folder for them with -o, as in -o pages/", count(len(sessions), "session"), x.format)
	}
	write := func(w io.Writer, session string) error {
		if err := f.write(ctx, w, log, session, x); err != nil {
			return fmt.Errorf("export session %q: %w", session, err)
		}
		return nil
	}
	if folder {
		if x.all && x.format == "html" {
			x.pages = map[string]bool{}
			for _, session := range sessions {
				x.pages[session] = true
			}
			if err := a.exportIndex(ctx, log, &x); err != nil {
				return err
			}
		}
		return a.exportInto(x.file, f.suffix, sessions, write)
	}
	return a.output(x.file, func(w io.Writer) error {
		for _, session := range sessions {
			if err := write(w, session); err != nil {
				return err
			}
		}
		return nil
	})
}

// exportTree writes sessions with all sessions below them, and reports the child sessions
// that the store does not have.
func (a *app) exportTree(ctx context.Context, log *eventlog.Log, w io.Writer, sessions []string) error {
	missing, err := transfer.ExportTree(ctx, log, w, sessions...)
	if n := len(missing); err == nil && n > 0 {
		a.note("not exported: %s that this store does not have: %s", count(n, "child session"), clean(strings.Join(missing, ", ")))
	}
	return err
}

// exportInto writes each session to its own file in a folder.
func (a *app) exportInto(folder, suffix string, sessions []string, write func(w io.Writer, session string) error) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, session := range sessions {
		file := filepath.Join(folder, fileName(session)+suffix)
		if err := a.output(file, func(w io.Writer) error { return write(w, session) }); err != nil {
			return err
		}
	}
	return nil
}

// fileName is the session id with escapes, in at most 213 bytes. No session has the name of the
// index.
func fileName(session string) string {
	const most = 180
	var name strings.Builder
	for _, b := range []byte(session) {
		switch {
		case name.Len() == 0 && strings.EqualFold(session, indexName):
			fmt.Fprintf(&name, "%%%02X", b)
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-', b == '.' && name.Len() > 0:
			name.WriteByte(b)
		default:
			fmt.Fprintf(&name, "%%%02X", b)
		}
	}
	if name.Len() <= most {
		return name.String()
	}
	return name.String()[:most] + "~" + event.DigestOf([]byte(session)).Hex()[:32]
}

// pathRow is an event in an export of active paths. Its first member tells import
// that it is not a line of a log.
type pathRow struct {
	Of            string `json:"active_path_of"`
	httpapi.Event `json:",inline"`
}

// activePathMark is the beginning of an export of active paths.
const activePathMark = `{"active_path_of`

// exportLines writes all lines of sessions, or the events of their active paths.
func exportLines(ctx context.Context, log *eventlog.Log, w io.Writer, sessions []string, x exportOptions) error {
	if x.path != activePath {
		return transfer.Export(ctx, log, w, sessions...)
	}
	for _, session := range sessions {
		from, to, err := x.turns.seqs(ctx, log, session)
		if err != nil {
			return fmt.Errorf("export session %q: %w", session, err)
		}
		for e, err := range log.Read(ctx, session, eventlog.From(from).OnPath()) {
			if err != nil {
				return fmt.Errorf("export session %q: %w", session, err)
			}
			if to > 0 && e.Seq > to {
				break
			}
			if err := json.MarshalWrite(w, pathRow{session, httpapi.NewEvent(&e)}, json.Deterministic(true)); err != nil {
				return fmt.Errorf("export session %q: event %d: %w", session, e.Seq, err)
			}
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// output runs f on standard output, or on a file. The file gets its name once it is
// complete.
func (a *app) output(file string, f func(io.Writer) error) error {
	if file == "" || file == "-" {
		return a.standardOutput(f)
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
	if err = errors.Join(temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return unwritten(file, err)
	}
	return nil
}

// standardOutput runs f on standard output. A terminal gets escapes instead of control
// characters; a file or a program gets the exact bytes.
func (a *app) standardOutput(f func(io.Writer) error) error {
	if !a.onTerminal() {
		return buffered(a.out, f)
	}
	guard := terminal.NewGuard(a.display(), false)
	if err := buffered(guard, f); err != nil {
		return err
	}
	return guard.Flush()
}

// overwrite runs f on a special file, for example a named pipe.
func (a *app) overwrite(file string, f func(io.Writer) error) error {
	w, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return unwritten(file, err)
	}
	return errors.Join(buffered(w, f), w.Close())
}

// unwritten is the error of writing a file. It leaves out the temporary name.
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
