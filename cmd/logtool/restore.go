package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/projection"
)

// restoration is a call of restore.
type restoration struct {
	filter filter
	dry    bool
	// present are the names of the files that a folder has, by folder.
	present map[string]map[string]bool
}

// restorer is a format whose program finds a file again that it has deleted.
type restorer interface {
	interop.Writer
	Restore(ctx context.Context, log *eventlog.Log, session string) (written.Restored, error)
}

func (a *app) restoreCommand() *cobra.Command {
	x := restoration{present: map[string]map[string]bool{}}
	cmd := a.command(&cobra.Command{
		Use:   "restore [SESSION...]",
		Short: "Write the files back that a program has deleted",
		Long: `Write the files of imported sessions of Claude Code, Codex and pi back, under their
ids and names, where no file of the name is: what the program has deleted, or what a new
machine lacks. Without a session, all sessions.

For each file, restore says how many of its records have the bytes of the imported file.
SAME VALUES are records with other bytes, for example with members in another order: an
import of the file adds them again, or fails. An import of the other files adds no event.
SHARED are the records that a fork has from its parent. Erased content comes back as
"[erased]". Records that the import rejected are missing.

Sessions of other programs go on with logtool resume, under a new id.

--since takes a day (today, yesterday, monday, 2026-03-01), a time (2026-03-01T09:30) in
your time zone, or an age (90m, 12h, 7d, 2w).`,
		Example: "  logtool restore --source claude --since 90d --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := x.filter.check(a.now()); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.restore(cmd.Context(), log, args, &x) })
		},
	}, traits{section: secMove, verb: "restoring", args: []argument{sessionArg, more}})
	cmd.Flags().StringVar(&x.filter.since, "since", "", "only sessions with activity since this day or time")
	cmd.Flags().StringVar(&x.filter.Source, "source", "", "only sessions imported from this program; none: the others")
	completeFlag(cmd, "source", sourceNames()...)
	cmd.Flags().BoolVar(&x.dry, "dry-run", false, "write nothing; print what would be written and where")
	return cmd
}

// restoredFile is a row of restore with --json. Without a path, why says why.
type restoredFile struct {
	Session string `json:"session"`
	Program string `json:"program,omitzero"`
	Path    string `json:"path,omitzero"`
	Records int    `json:"records"`
	Same    int    `json:"same"`
	Shared  int    `json:"shared"`
	Erased  int    `json:"erased"`
	Bytes   int    `json:"bytes"`
	Why     string `json:"why,omitzero"`
	Error   string `json:"error,omitzero"`
	err     error
}

func (a *app) restore(ctx context.Context, log *eventlog.Log, args []string, x *restoration) error {
	ids, err := a.named(ctx, log, args)
	if err != nil {
		return err
	}
	rows, err := x.filter.sessions(ctx, a, log, ids)
	if err != nil {
		return err
	}
	var files []restoredFile
	var failed []error
	step := a.steps(len(rows))
	for _, row := range listing.WithoutState(rows) {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := a.restoreOne(ctx, log, row.ID, x)
		if f.err != nil {
			f.err = fmt.Errorf("restore session %q: %w", row.ID, f.err)
			f.Error = f.err.Error()
			failed = append(failed, f.err)
		}
		if f.Path != "" || f.Why != "" || f.err != nil {
			files = append(files, f)
		}
		step()
	}
	a.progress.Say(nil)
	err = printRows(a, files, func(p *printer) { p.restored(files, x.dry) })
	return errors.Join(append([]error{err}, failed...)...)
}

// The reasons why restore writes no file.
const (
	whyPresent = "the file is there"
	whyWritten = "written by logtool resume: resume it again"
	whyOther   = "of another program: logtool resume goes on with it"
)

// restoreOne writes the file of a session.
func (a *app) restoreOne(ctx context.Context, log *eventlog.Log, session string, x *restoration) (f restoredFile) {
	f.Session = session
	begun, format, err := beginningOf(ctx, log, session)
	if err != nil || format == "" {
		f.err = err
		return f
	}
	f.Program = format
	program, ok := restorerOf(format)
	switch {
	case begun:
		f.Why = whyWritten
		return f
	case !ok:
		f.Why = whyOther
		return f
	}
	r, err := program.Restore(ctx, log, session)
	if err != nil || r.Path == "" {
		f.err = err
		return f
	}
	if !filepath.IsLocal(filepath.FromSlash(r.Path)) { // the log may be of somebody else
		f.err = fmt.Errorf("its file %s is not below the folder of the program", clean(r.Path))
		return f
	}
	path := filepath.Join(a.pathOf(program.Folders()[0]), filepath.FromSlash(r.Path))
	f.Records, f.Same, f.Shared, f.Erased, f.Bytes = r.Records, r.Same, r.Shared, r.Erased, len(r.Body)
	if x.has(a, program, path) {
		f.Why = whyPresent
		return f
	}
	f.Path = path
	if !x.dry {
		f.err = writeNew(path, r.Body, func() error { return nil })
	}
	return f
}

// has reports whether the folders of the program have a file of the name.
func (x *restoration) has(a *app, program interop.Writer, path string) bool {
	for _, f := range program.Folders() {
		folder := a.pathOf(f)
		if x.present[folder] == nil {
			x.present[folder] = namesBelow(folder)
		}
		if x.present[folder][filepath.Base(path)] {
			return true
		}
	}
	return false
}

// namesBelow are the names of the files in a folder and below. A folder that is missing has
// none, and writeNew reports one that cannot be read.
func namesBelow(folder string) map[string]bool {
	names := map[string]bool{}
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names[entry.Name()] = true
		}
		return nil
	})
	return names
}

func restorerOf(format string) (restorer, bool) {
	for _, f := range formats.All() {
		if r, ok := f.(restorer); ok && f.Name() == format {
			return r, true
		}
	}
	return nil, false
}

// beginningOf is the format that a session was imported with; begun is true if logtool resume
// wrote its file.
func beginningOf(ctx context.Context, log *eventlog.Log, session string) (begun bool, format string, err error) {
	for e, err := range log.Read(ctx, session, eventlog.All().Own()) {
		if err != nil {
			return false, "", err
		}
		if f, ok := written.Of(&e); ok {
			return true, f.Format, nil
		}
		break
	}
	info, err := projection.Load(ctx, log, session, projection.Info())
	return false, info.State.Source.Format, err
}

// writeNew writes a file under a temporary name, calls before, and gives the file its name. It
// fails if there is a file of the name.
func writeNew(path string, body []byte, before func() error) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists already: nothing was written", clean(path))
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the session: %w", err)
	}
	f, err := os.CreateTemp(dir, ".resume-*.tmp") // with mode 0600
	if err != nil {
		return fmt.Errorf("write the session: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(body)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write the session: %w", err)
	}
	if err := before(); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil { // fails if the name is taken
		return fmt.Errorf("write the session: %w", err)
	}
	return nil
}

// restored prints the files, and the numbers of sessions without one.
func (p *printer) restored(files []restoredFile, dry bool) {
	table := term.Table{Heading: []string{"RECORDS", "SAME BYTES", "SAME VALUES", "SHARED", "ERASED", "FILE"}, Right: []int{0, 1, 2, 3, 4}, Ends: []string{"FILE"}}
	why, differ := map[string]int{}, 0
	for _, f := range files {
		if f.Why != "" {
			why[f.Why]++
		}
		if f.Path == "" || f.err != nil {
			continue
		}
		values := f.Records - f.Same - f.Shared - f.Erased
		differ += values
		table.Rows = append(table.Rows, []string{
			thousands(f.Records), thousands(f.Same), thousands(values), thousands(f.Shared), thousands(f.Erased), clean(f.Path),
		})
	}
	if len(table.Rows) > 0 {
		p.Print(table)
	}
	verb := "restored"
	if dry {
		verb = "would restore"
	}
	p.Printf("%s %s\n", verb, count(len(table.Rows), "file"))
	if differ > 0 {
		p.Printf("  %s with the same values only: an import of their files adds them again, or fails\n", count(differ, "record"))
	}
	for _, reason := range []string{whyPresent, whyWritten, whyOther} {
		if n := why[reason]; n > 0 {
			p.Printf("  not restored: %s, %s\n", count(n, "session"), reason)
		}
	}
}
