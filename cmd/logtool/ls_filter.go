package main

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/interop/formats"
)

// listing is what the ls command was told.
type listing struct {
	long  bool
	sort  string
	limit int

	source, since, until, text, model, cwd string

	from, to time.Time // of since and until; zero is none
}

// noSource is what --source calls sessions that were not imported.
const noSource = "none"

// sourceNames are what --source takes.
func sourceNames() []string {
	return append(formats.Names(), noSource)
}

func (l *listing) check(now time.Time) (err error) {
	if !slices.Contains(sorts, l.sort) {
		return usagef("--sort is one of %s, not %q", strings.Join(sorts, ", "), l.sort)
	}
	if l.limit < 0 {
		return usagef("--limit is a number of sessions, not %d", l.limit)
	}
	if l.cwd != "" {
		if l.cwd, err = filepath.Abs(l.cwd); err != nil {
			return usagef("--cwd: %v", err)
		}
	}
	if l.from, _, err = parseWhen(l.since, now); err != nil {
		return usagef("--since %v", err)
	}
	if _, l.to, err = parseWhen(l.until, now); err != nil {
		return usagef("--until %v", err)
	}
	if !l.from.IsZero() && !l.to.IsZero() && !l.from.Before(l.to) {
		return usagef("--since %s is not before --until %s", l.since, l.until)
	}
	return nil
}

// reads reports whether sessions must be read to tell which are listed.
func (l *listing) reads() bool { return l.model != "" || l.sort == sortCost || l.long && l.text != "" }

// mayWant leaves out what need not be read.
func (l *listing) mayWant(row *sessionRow) bool {
	switch {
	case !l.from.IsZero() && row.Last.Before(l.from), !l.to.IsZero() && !row.First.Before(l.to):
		return false
	case row.begun:
		return l.wantsOrigin(row)
	}
	return true
}

// wants decides on a session of which is known what the filters ask for.
func (l *listing) wants(row *sessionRow) bool {
	if !l.wantsOrigin(row) || !holds(row.called()+" "+row.about, l.text) {
		return false
	}
	return l.model == "" || row.tally != nil && slices.ContainsFunc(row.Models, func(model string) bool { return holds(model, l.model) })
}

func (l *listing) wantsOrigin(row *sessionRow) bool {
	source := row.Source
	if source == "" {
		source = noSource
	}
	return (l.source == "" || source == l.source) && (l.cwd == "" || isBelow(row.CWD, l.cwd))
}

// holds reports whether text has a part, in any case.
func holds(text, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// isBelow reports whether a folder is another, or below it.
func isBelow(folder, above string) bool {
	below, err := filepath.Rel(above, filepath.Clean(folder))
	return folder != "" && err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
}
