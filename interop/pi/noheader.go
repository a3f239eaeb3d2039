package pi

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// A file whose first line is damaged has no header. Its session has the id in the name of the
// file, and begins with a replacement of the header. If a later version of the file has the
// header, that becomes a session_updated.

// datedName matches the name of a session's file: the time and the id of the session.
var datedName = regexp.MustCompile(`^\d{4}-\d\d-\d\dT[^_]*_[^_]+\.jsonl$`)

// idInName is the session id in the name of a file, <time>_<id>.jsonl; empty if there is none.
func idInName(path string) string {
	name := filepath.Base(path)
	if !datedName.MatchString(name) {
		return ""
	}
	return idIn(strings.TrimSuffix(name, ".jsonl"))
}

// entryKinds are the types of records other than the header.
var entryKinds = []string{
	"message", "model_change", "thinking_level_change", "compaction", "branch_summary", "custom", "custom_message", "label", "session_info",
	"context_edit", "usage",
}

// isEntry reports whether a line begins a record other than the header.
func isEntry(h head.Head) bool {
	return h.Has("type", "timestamp") && slices.Contains(entryKinds, h.Text("type"))
}

// replaceHeader begins the session of a file without a header, before a record.
func (im *importer) replaceHeader(before *records.Record, f *facts) error {
	rec := records.Record{Source: before.Source, Line: 1, Value: []byte(`{}`), Kept: true}
	replacement, err := read(&rec)
	if err != nil {
		return err
	}
	replacement.id, replacement.at = im.named, f.at
	im.result.NoHeader()
	return im.header(rec, &replacement)
}

// isReplacement reports whether the record is the replacement of a header.
func (f *facts) isReplacement() bool { return len(f.members) == 0 }

// addLateHeader counts a header that the log has. If the session began without its header, it
// adds the header.
func (im *importer) addLateHeader(s *session, rec *records.Record, f *facts) error {
	if s.header != nil || f.isReplacement() {
		return nil
	}
	key := sessions.Key{Own: s.ID, Part: latePart}
	if !s.lacksHeader || !s.From(formatName) || s.FindOwn(key.Own, key.Part).Seq > 0 {
		im.result.Present++
		return nil
	}
	e, err := rec.Event(latePart, event.Session{
		Updated: true, CWD: f.text("cwd"), Extra: rec.Value.Clone(),
		Source: event.SessionSource{Format: formatName, Version: version(f), Path: rec.Origin(0).Source, SessionID: s.ID},
	})
	if err != nil {
		return rec.Located(err)
	}
	s.trail.Grow(s.Add(key, f.at, e), e.Type)
	im.result.Imported++
	return nil
}
