package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/upkeep/erase"
)

// pattern is the pattern of --match, --match-file or --regexp.
func (r *redactRun) pattern() (search.Pattern, error) {
	texts := r.texts
	for _, name := range r.files {
		text, err := r.textIn(name)
		if err != nil {
			return search.Pattern{}, err
		}
		texts = append(texts, text)
	}
	switch {
	case len(texts) > 0 && r.expression != "":
		return search.Pattern{}, errors.New("give --match or --regexp, not both")
	case r.expression != "":
		return search.Regexp(r.expression)
	}
	return search.Literal(texts...)
}

// textIn is the text in a file, or in standard input, without the newline at its end.
func (r *redactRun) textIn(name string) (string, error) {
	read := func() ([]byte, error) { return os.ReadFile(r.app.fromHome(name)) }
	if name == stdinName {
		read = func() ([]byte, error) { return io.ReadAll(r.app.in) }
	}
	text, err := read()
	if err == nil && !utf8.Valid(text) {
		err = errors.New("it is not UTF-8")
	}
	if err != nil {
		return "", fmt.Errorf("read the text of --match-file %s: %w", name, err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// match erases all events with the pattern.
func (r *redactRun) match(ctx context.Context, log *eventlog.Log, pattern search.Pattern, args []string) error {
	sessions, err := findEach(args, func(arg string) (string, error) { return exactly(ctx, log, arg) })
	if err != nil {
		return err
	}
	if len(sessions) == 0 {
		r.app.progress.ReadsAll()
	}
	done, failed := erase.Match(ctx, log, pattern, sessions, r.options())
	if failed != nil && len(done.Erased) == 0 {
		return redactError(failed)
	}
	opTrees := errors.Join(r.eraseOpTrees(&done), r.nameFiles(ctx, log, &done))
	nothing := len(done.Places)+len(done.Left)+len(done.Files) == 0
	switch {
	case r.app.json:
		err = r.Value(r.matchedRow(&done))
	case !nothing:
		r.matched(&done)
	}
	err = errors.Join(err, opTrees, r.Flush())
	switch {
	case failed != nil:
		return redactError(failed)
	case err != nil:
		return err
	case len(done.Left)+len(done.Files) > 0:
		return errTextLeft
	case nothing:
		return errNothingToErase
	}
	return nil
}

var (
	errTextLeft       = errors.New("the text is left in the places above; remove the session or the file, or copy the session without them")
	errNothingToErase = errors.New("nothing found to erase: the text is in no session that was searched")
)

func (r *redactRun) matched(done *erase.Redaction) {
	r.report(done)
	for _, p := range done.Left {
		r.Printf("%s %s: redaction keeps the headers, the structure of events and lost events\n", r.Paint(term.Yellow, "left in"), placeText(p))
	}
	for _, f := range done.Files {
		r.Printf("%s the file %s, at byte %d\n", r.Paint(term.Yellow, "left in"), clean(f.Path), f.Offset)
	}
}

// placeText names a place of stored text.
func placeText(p search.Place) string {
	text := reference(erase.EventRef{Session: p.Session, Seq: p.Seq, Type: p.Type})
	switch {
	case p.Blob != "":
		return fmt.Sprintf("%s, body %s", text, p.Blob)
	case p.Member != "":
		return fmt.Sprintf("%s, %s", text, clean(p.Member))
	}
	return text + ", header"
}

// matchedRow is a redaction of a pattern with --json.
type matchedRow struct {
	redactionRow
	Places []placeRow `json:"places"`
	Left   []placeRow `json:"left"`
	Files  []fileRow  `json:"files"`
}

// placeRow is a place of stored text with --json.
type placeRow struct {
	eventRef
	Member string `json:"member,omitzero"`
	Blob   string `json:"blob,omitzero"`
}

// fileRow is a place in a file with --json.
type fileRow struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
}

func (r *redactRun) matchedRow(done *erase.Redaction) matchedRow {
	row := matchedRow{redactionRow: r.row(done), Places: placeRows(done.Places), Left: placeRows(done.Left)}
	for _, f := range done.Files {
		row.Files = append(row.Files, fileRow{f.Path, f.Offset})
	}
	return row
}

func placeRows(places []search.Place) (rows []placeRow) {
	for _, p := range places {
		rows = append(rows, placeRow{eventRef{p.Session, p.Seq, p.Type}, p.Member, string(p.Blob)})
	}
	return rows
}
