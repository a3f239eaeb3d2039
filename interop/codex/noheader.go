package codex

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// A file whose first line is damaged has no header. Its session has the id in the name of the
// file, and begins with a replacement of the header. If a later version of the file has the
// header, that becomes a session_updated.

// idInName is the session id in the name of a file, rollout-<time>-<id>.jsonl; empty if there
// is none.
func idInName(path string) string {
	const size = 36 // of a UUID
	name, isLines := strings.CutSuffix(filepath.Base(path), ".jsonl")
	if !isLines || !strings.HasPrefix(name, "rollout-") || len(name) < size {
		return ""
	}
	if id := name[len(name)-size:]; head.IsUUID(id) {
		return id
	}
	return ""
}

// lacksHeader reports whether the file has no header, if the record is the first session_meta
// of the file, or comes before it. The first session_meta of a fork without a header is a copy
// of the parent's header.
func (im *importer) lacksHeader(l *line) bool {
	switch {
	case im.named == "":
		return false
	case l.kind != metaKind:
		return im.beginsSession(l)
	}
	isFirst := l.rec.Line == 1 && len(im.result.Rejected) == 0
	return !isFirst && headerOf(l).id != im.named
}

// replaceHeader begins the session of a file without a header, before a record.
func (im *importer) replaceHeader(l *line) error {
	type payload struct {
		ID   string `json:"id"`
		From string `json:"forked_from_id,omitempty"`
	}
	p := payload{ID: im.named}
	if l.kind == metaKind {
		p.From = headerOf(l).id
	}
	value, err := json.Marshal(struct {
		Kind    string    `json:"type"`
		At      time.Time `json:"timestamp,omitzero"`
		Payload payload   `json:"payload"`
	}{metaKind, l.at, p}) // Codex writes the copies within a second of the header
	if err != nil {
		return err
	}
	im.result.NoHeader()
	im.hasNoHeader = true
	rec := records.Record{Source: l.rec.Source, Line: 1, Value: value, Kept: true}
	replacement, err := readLine(&rec)
	if err != nil {
		return err
	}
	im.held = append([]records.Record{rec}, im.held...)
	if err := im.start(headerOf(replacement), false); err != nil {
		return err
	}
	return im.record(*l.rec)
}

// isReplacement reports whether a record is the replacement of a header.
func (im *importer) isReplacement(l *line) bool {
	return im.hasNoHeader && l.rec.Line == 1 && l.rec.Size == 0 && l.kind == metaKind
}

// applyReplacement adds the replacement of the header, unless the session has a start. The
// replacement is no record of the file, and is not counted.
func (im *importer) applyReplacement(l *line) error {
	counted := im.result.Result
	if !im.s.hasSource {
		if err := im.apply(l); err != nil {
			return err
		}
	}
	im.advance(l)
	im.result.Imported, im.result.Present, im.result.Withheld = counted.Imported, counted.Present, counted.Withheld
	im.result.Touch(im.s.ID)
	return nil
}

// lateHeader is the key of the header that a file has only in a later version.
var lateHeader = sessions.Key{Own: "header", Part: titlePart}

// addLateHeader adds the header of a session that began without it.
func (im *importer) addLateHeader(l *line) error {
	if m := im.s.FindOwn(lateHeader.Own, lateHeader.Part); m.Seq > 0 {
		im.result.Found(m.Withheld)
		return nil
	}
	p := im.metaPayload(l)
	if p == nil {
		p = event.Session{Updated: true, Extra: l.payloadExtra()}
	}
	e, err := l.rec.Event(lateHeader.Part, p)
	if err != nil {
		return l.rec.Located(err)
	}
	id := im.s.NextID(lateHeader, im.at)
	im.s.index(p, id, im.s.Add(lateHeader, im.at, e))
	im.result.Imported++
	return nil
}
