package gemini

import (
	"bytes"
	"cmp"
	"iter"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// A file of lines whose first line is damaged, or a document whose start is, has no header. Its session begins with a
// replacement of the header. The id is in a later line, or the name of the file has the first
// digits of it. Then the session has these digits as its id, unless the log has the session
// with the whole id. If a later version of the file has the header, it becomes a
// session_updated.

// datedName matches the name of a session's file.
var datedName = regexp.MustCompile(`^session-\d{4}-\d\d-\d\dT\d\d-\d\d(?:-\d\d)?-([0-9a-f]{8})\.jsonl?$`)

// shortID is the length of an id in the name of a file.
const shortID = 8

// idInName is the session id, or the first digits of it, in the name of a file; empty if there is
// none.
func idInName(path string) string {
	name := filepath.Base(path)
	if m := datedName.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	if id, isLines := strings.CutSuffix(name, ".jsonl"); isLines && head.IsUUID(id) && filepath.Base(filepath.Dir(filepath.Dir(path))) == "chats" {
		return id // of a sub-agent
	}
	return ""
}

// isEntry reports whether a line begins a message or a change.
func isEntry(h head.Head) bool {
	kind := h.Text("type")
	return h.Has("id", "timestamp") && (kind == "user" || kind == "gemini") && !h.Has("message") || h.Has("$set") && !h.Has("type")
}

// isDocument reports whether a file has the name of a document.
func isDocument(path string) bool { return filepath.Ext(path) == ".json" }

// hasEntry reports whether the damaged start of a document has a message.
func hasEntry(first []byte) bool {
	const most = 100 // objects to look at
	for range most {
		n := bytes.IndexByte(first, '{')
		if n < 0 {
			return false
		}
		if first = first[n:]; isEntry(head.Object(first)) {
			return true
		}
		first = first[1:]
	}
	return false
}

// records are the records of the file: of a document whose start is damaged, the messages after
// the damage.
func (im *importer) records() (iter.Seq2[records.Record, error], error) {
	if im.named == "" || !isDocument(im.source.Name) {
		return records.Values(im.source), nil
	}
	begin, err := im.source.Head()
	if err != nil {
		return nil, err
	}
	if h := head.Object(begin); h.Text("sessionId") != "" && h.Text("projectHash") != "" {
		return records.Values(im.source), nil
	}
	return records.Fragments(im.source, func(object []byte) bool { return isEntry(head.Object(object)) }), nil
}

// replaceHeader begins the session of a file without a header, before a record.
func (im *importer) replaceHeader(before *record) error {
	id := im.named
	for line, err := range records.Lines(im.source) {
		if err != nil {
			return err
		}
		if !bytes.Contains(line, []byte(`"sessionId"`)) {
			continue
		}
		h := head.Object(line)
		if named := cmp.Or(h.Text("sessionId"), h.In("$set").Text("sessionId")); strings.HasPrefix(named, im.named) {
			id = named
			break
		}
	}
	if len(id) == shortID {
		var err error
		if id, err = im.wholeID(id); err != nil {
			return err
		}
	}
	value, err := json.Marshal(map[string]string{"sessionId": id})
	if err != nil {
		return err
	}
	im.result.NoHeader()
	header, err := readRecord(records.Record{Source: before.Source, Line: 1, Value: value})
	if err != nil {
		return err
	}
	header.at = before.at
	return im.startSession(&header)
}

// isReplacement reports whether the record is the replacement of a header.
func (r *record) isReplacement() bool {
	return r.members.Has("sessionId") && !r.members.Has("projectHash")
}

// wholeID is the id of the session of the log that begins with the digits, or the digits.
func (im *importer) wholeID(digits string) (string, error) {
	for info, err := range im.log.Sessions(im.ctx) {
		if err != nil {
			return "", err
		}
		if info.Err != nil || !strings.HasPrefix(info.ID, digits+"-") {
			continue
		}
		if start, err := event.DecodeKept[event.Session](&info.First); err == nil && start.Source.Format == formatName {
			return info.ID, nil
		}
	}
	return digits, nil
}

// openShort opens the session that began without its header, if its id is the first digits of the
// id of a new session s. Else it returns s.
func (im *importer) openShort(s *session) (*session, error) {
	if !head.IsUUID(s.ID) {
		return s, nil
	}
	short, err := openSession(im.ctx, im.log, s.ID[:shortID])
	if err != nil || !short.lacksHeader || !short.From(formatName) {
		return s, err
	}
	return short, nil
}

// lateHeader is the key of the header that a file has only in a later version.
var lateHeader = sessions.Key{Own: "header", Part: summaryPart}

// addLateHeader adds the header of a session that began without it, or that the log began. done
// is false if the session began with its header, or has it already.
func (im *importer) addLateHeader(s *session, r *record) (done bool, err error) {
	if !s.lacksHeader && !s.Begun || !s.From(formatName) || s.FindOwn(lateHeader.Own, lateHeader.Part).Seq > 0 {
		return false, nil
	}
	e, err := r.Event(lateHeader.Part, event.Session{Updated: true, Agent: agentName, Extra: r.Value, Source: event.SessionSource{
		Format: formatName, Path: r.Origin(0).Source, SessionID: r.text("sessionId"),
	}})
	if err != nil {
		return false, r.Located(err)
	}
	s.trail.Grow(s.Add(lateHeader, r.at, e), e.Type)
	im.result.Imported++
	return true, nil
}
