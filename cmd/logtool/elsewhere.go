package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop"
)

// transcripts are the files of programs that may have the content of sessions: the files of
// the sessions and of their forks in the folders of the programs, the files that they were
// imported from, and the files that resume wrote elsewhere.
func (a *app) transcripts(ctx context.Context, log *eventlog.Log, sessions []string) ([]string, error) {
	ids, files, err := withForks(ctx, log, sessions)
	if err != nil {
		return nil, err
	}
	for _, w := range writers() {
		for _, f := range w.Folders() {
			files = append(files, filesNamed(a.pathOf(f), ids)...)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), ctx.Err()
}

// withForks are the UUIDs of sessions and of their forks, and the files that they were imported
// from or that resume wrote for them, if the files exist. A damaged session has none.
func withForks(ctx context.Context, log *eventlog.Log, sessions []string) (ids map[string]bool, files []string, err error) {
	forks, err := log.Forks(ctx, sessions...)
	if err != nil {
		return nil, nil, err
	}
	ids = map[string]bool{}
	done := map[string]bool{} // in a damaged store, sessions can be forks of each other
	for queue := slices.Clone(sessions); len(queue) > 0; queue = queue[1:] {
		session := queue[0]
		if done[session] {
			continue
		}
		done[session] = true
		id, _, _ := strings.Cut(session, ".") // of a sub-agent, the session
		if uuid.Validate(id) == nil {
			ids[id] = true
		}
		if path := fileOf(ctx, log, session); path != "" {
			files = append(files, path)
		}
		for _, f := range forks.ByParent[session] {
			queue = append(queue, f.Session)
		}
	}
	return ids, files, nil
}

// fileOf is the file that a session was imported from, or that resume wrote for it, by its whole
// path; empty if there is none. Each event of an import names its file: the first ones may be
// erased.
func fileOf(ctx context.Context, log *eventlog.Log, session string) string {
	const most = 1000
	n := 0
	for e, err := range log.Read(ctx, session, eventlog.All().Own().Bare()) {
		if n++; err != nil || n > most {
			return ""
		}
		name := originOf(&e)
		if f, ok := written.Of(&e); ok {
			name = f.Path
		} else if s, ok, err := event.Decode[event.Session](&e); ok && err == nil && name == "" {
			name = s.Source.Path
		}
		if name == "" {
			continue
		}
		path, err := filepath.Abs(name)
		if info, missing := os.Lstat(path); err != nil || missing != nil || info.IsDir() {
			return ""
		}
		return path
	}
	return ""
}

// filesNamed are the files in a folder and below that have one of the ids in their name, or in
// the name of their folder.
func filesNamed(folder string, ids map[string]bool) (files []string) {
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // a folder that cannot be read has no file to name
		}
		below, _ := filepath.Rel(folder, path)
		for name := range strings.SplitSeq(filepath.ToSlash(below), "/") {
			name = strings.TrimSuffix(name, filepath.Ext(name))
			if n := len(name) - len(uuid.Nil.String()); n >= 0 && ids[name[n:]] {
				files = append(files, path)
				break
			}
		}
		return nil
	})
	return files
}

// transcriptRemedy says what to do with a file that may have erased content.
const transcriptRemedy = "it may have the content: delete it"

// expiry says when a program deletes the transcripts of a first import, and how to keep them;
// empty for other imports.
func (a *app) expiry(table *interop.Table) string {
	claude, ok := restorerOf("claude")
	if !ok {
		return ""
	}
	for _, f := range claude.Folders() {
		folder, events := a.pathOf(f), 0
		for i := range table.Rows {
			row := &table.Rows[i]
			path, err := filepath.Abs(row.Path)
			if err != nil || row.Format != claude.Name() || !listing.IsBelow(path, folder) {
				continue
			}
			if row.Present > 0 {
				return ""
			}
			events += row.Events
		}
		if events > 0 {
			settings := filepath.Join(filepath.Dir(folder), "settings.json")
			return fmt.Sprintf("Claude Code deletes a transcript %s after its last change: cleanupPeriodDays in %s keeps it for longer.\n"+
				"`%s` stores what it writes from now on, and logtool restore brings deleted files back.",
				count(keptDays(settings), "day"), clean(settings), a.commandLine("import --known --follow"))
		}
	}
	return ""
}

// keptDays is how long Claude Code keeps a transcript, with these settings.
func keptDays(settings string) int {
	var s struct {
		Days int `json:"cleanupPeriodDays"`
	}
	text, err := os.ReadFile(settings)
	if err != nil || json.Unmarshal(text, &s) != nil || s.Days < 1 {
		return 30 // without the setting
	}
	return s.Days
}
