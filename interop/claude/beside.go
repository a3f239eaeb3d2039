package claude

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// summary is a summary line.
type summary struct {
	rec  records.Record
	text string
}

// titleFromBeside gives the sessions of the file the titles in other files of its folder:
// Claude Code writes the summary of a conversation at the start of the file of a later
// one. Of several summaries of a session, the one with the newest leaf counts. A stream has
// no folder.
func (im *importer) titleFromBeside(path string) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	for _, s := range im.order {
		if s.side || s.New() || s.Erased || s.titles.named {
			continue
		}
		leaf, newest := "", max(s.titles.leaf, s.forkedAt)
		summaries := importrun.Shared(im.ctx, folderKey(filepath.Dir(path)), summariesIn)
		for uuid := range summaries {
			if n := s.tree.node(uuid); n != nil && n.seq > newest {
				leaf, newest = uuid, n.seq
			}
		}
		if leaf == "" || s.FindOwn(summaryKey(leaf).Own, titlePart).Seq > 0 {
			continue
		}
		if err := im.addSummary(s, leaf, summaries[leaf]); err != nil {
			return err
		}
	}
	return nil
}

// addSummary adds the summary with a leaf as the title of the session.
func (im *importer) addSummary(s *session, leaf string, from summary) error {
	e, err := from.rec.Event(titlePart, event.Session{Updated: true, Title: from.text})
	if err != nil {
		return from.rec.Located(err)
	}
	s.tree.extend(s.Add(summaryKey(leaf), im.at, e))
	return nil
}

// summaryKey is the key of the title from the summary of another file.
func summaryKey(leaf string) sessions.Key {
	return sessions.Key{Own: "summary " + leaf, Part: titlePart}
}

// folderKey is the key of the summaries of a folder.
type folderKey string

// summariesIn returns the summaries at the start of the files of a folder, by leaf. Of
// several with one leaf, the last by file name and line counts. An unreadable file has
// none: its own import reports the error.
func summariesIn(_ context.Context, folder folderKey) map[string]summary {
	entries, err := os.ReadDir(string(folder))
	if err != nil {
		return nil
	}
	all := map[string]summary{}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || filepath.Ext(entry.Name()) != ".jsonl" {
			continue
		}
		if src, err := interop.File(filepath.Join(string(folder), entry.Name())); err == nil {
			leadingSummaries(src, all)
		}
	}
	return all
}

// leadingSummaries adds the summaries before the first line of conversation.
func leadingSummaries(src interop.Source, all map[string]summary) {
	for rec, err := range records.Records(src) {
		if err != nil {
			return
		}
		f, err := factsOf(rec.Value)
		if err != nil || !slices.Contains(bookkeeping, f.Type) {
			return
		}
		if f.Type == "summary" && f.LeafUUID != "" && f.Summary != "" {
			all[f.LeafUUID] = summary{rec.Clone(), f.Summary}
		}
	}
}
