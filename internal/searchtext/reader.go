package searchtext

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
)

// Reader extracts the text of events for searches: the text that a person reads,
// on one line (package search). One goroutine at a time may use it.
type Reader struct {
	// Open opens a blob with spilled data or with a body of text.
	Open func(ctx context.Context, d event.Digest) (io.ReadCloser, error)

	ctx    context.Context
	text   []byte
	cursor rawjson.Cursor
	err    error // of a body, while the cursor reads
	dec    jsontext.Decoder
}

// Read returns the text of e; the next call overwrites it. The text of a redacted event
// is empty, and so is the text of an event that repeats another event. Errors come from
// Open or match event.ErrInvalidData.
func (r *Reader) Read(ctx context.Context, e *event.Event) ([]byte, error) {
	if ctx == nil || e == nil {
		return nil, fmt.Errorf("%w: the context or the event of Reader.Read", event.ErrNilArgument)
	}
	r.ctx, r.text = ctx, r.text[:0]
	switch e.Type.Name() {
	case event.ProjectionSnapshotted, event.AccountingFlushed:
		return r.text, nil
	}
	if e.Redacted() || e.Repeats() {
		return r.text, nil
	}
	data := e.Data
	if digest, _, spilled := e.Spilled(); spilled && data == nil {
		body, err := r.blob(digest, 1<<62)
		if err != nil {
			return nil, fmt.Errorf("data of event %d of session %q: %w", e.Seq, e.SessionID, err)
		}
		data = body
	}
	if err := r.read(data, !e.Type.Known()); err != nil {
		return nil, fmt.Errorf("text of event %d of session %q: %w", e.Seq, e.SessionID, err)
	}
	return r.text, nil
}

// read adds the text of data. Rare JSON goes to a decoder.
func (r *Reader) read(data jsontext.Value, free bool) error {
	sure := rawjson.Read(data, func(c rawjson.Cursor) bool {
		r.cursor = c
		return r.value(free)
	})
	if r.cursor = (rawjson.Cursor{}); sure {
		return r.err
	}
	r.text, r.err = r.text[:0], nil
	return r.decode(data, free)
}

// maxTextBlob bounds how much of a text body is searched.
const maxTextBlob = 16 << 20

// Only these members of a known payload are text. All strings and numbers in a
// free member are text.
var (
	textMembers = nameSet("text", "title", "summary", "name", "message", "reason", "description", "prompt", "note", "task",
		"label", "from_agent", "to_agent", "target", "url", "uri",
		"parts", "content", "entries", "read_files", "modified_files")
	freeMembers = nameSet("arguments", "value", "result", "answer", "detail", "patch", "labels", "input", "context", "error")
)

func nameSet(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// value adds the text of the cursor's next value. All strings and numbers of a free
// value are text. It returns false if a decoder must read the data. It stores the error
// of a body in r.err.
func (r *Reader) value(free bool) (sure bool) {
	switch r.cursor.Kind() {
	case '"':
		text, sure := r.cursor.Text()
		r.add(text)
		return sure
	case '{':
		return r.object(free)
	case '[':
		return r.cursor.Array(func() bool { return r.value(free) })
	}
	value, sure := r.cursor.Skip()
	if free && value.Kind() == jsontext.KindNumber {
		r.add(value)
	}
	return sure
}

func (r *Reader) object(free bool) (sure bool) {
	var body attachment
	sure = r.cursor.Object(func(name []byte) bool { return r.member(name, free, &body) })
	if sure && r.err == nil {
		r.err = r.attached(&body)
	}
	return sure
}

// member adds the text of an object's member.
func (r *Reader) member(name []byte, free bool, body *attachment) (sure bool) {
	if free || freeMembers[string(name)] {
		return r.value(true)
	}
	if textMembers[string(name)] {
		return r.value(false)
	}
	value, sure := r.cursor.Skip()
	if sure {
		body.note(string(name), value)
	}
	return sure
}

// add adds a string, unless it is base64.
func (r *Reader) add(text []byte) {
	if !encodedBytes(text) {
		r.text = appendClean(r.text, text)
	}
}

// encodedBytes reports whether a string is base64 rather than text: it is long and
// has only base64 characters, after the beginning of a data URL if there is one.
func encodedBytes(text []byte) bool {
	const long = 1 << 10
	if len(text) < long {
		return false
	}
	if bytes.HasPrefix(text, []byte("data:")) {
		if i := bytes.Index(text[:128], []byte(";base64,")); i >= 0 {
			text = text[i+len(";base64,"):]
		}
	}
	for _, c := range text {
		if !base64Chars[c] {
			return false
		}
	}
	return true
}

var base64Chars = func() (table [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=\r\n" {
		table[c] = true
	}
	return table
}()

// attachment is the body that an object refers to: a document, or an artifact.
type attachment struct {
	mediaType string
	blob      event.Digest
	data      jsontext.Value // a string in base64
}

// note reads a member that is no text itself.
func (a *attachment) note(name string, value jsontext.Value) {
	switch name {
	case "media_type":
		a.mediaType = stringOf(value)
	case "blob", "body":
		a.reference(value)
	case "data":
		if a.mediaType == "" || textualType(a.mediaType) {
			a.data = value.Clone()
		}
	}
}

// reference reads a blob reference.
func (a *attachment) reference(value jsontext.Value) {
	var ref event.BlobRef
	if value.Kind() == jsontext.KindBeginObject && json.Unmarshal(value, &ref) == nil {
		a.blob = ref.Blob
	}
}

// stringOf is a JSON string's content; empty for other values.
func stringOf(value jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

// attached adds the text of a body.
func (r *Reader) attached(a *attachment) error {
	if !textualType(a.mediaType) {
		return nil
	}
	if body, err := base64.StdEncoding.DecodeString(stringOf(a.data)); err == nil {
		r.text = appendClean(r.text, body)
	}
	if a.blob == "" {
		return nil
	}
	body, err := r.blob(a.blob, maxTextBlob)
	if err == nil {
		r.text = appendClean(r.text, body)
	}
	return err
}

// textualType reports whether bodies of a media type are text.
func textualType(mediaType string) bool {
	name, _, _ := strings.Cut(strings.ToLower(mediaType), ";")
	name = strings.TrimSpace(name)
	switch {
	case strings.HasPrefix(name, "text/"), strings.HasSuffix(name, "+json"), strings.HasSuffix(name, "+xml"):
		return true
	}
	switch name {
	case "application/json", "application/xml", "application/yaml", "application/javascript", "application/x-sh", "application/toml":
		return true
	}
	return false
}

// blob reads at most so many bytes of a blob.
func (r *Reader) blob(d event.Digest, most int64) ([]byte, error) {
	if r.Open == nil {
		return nil, fmt.Errorf("%w: Open of the Reader", event.ErrNilArgument)
	}
	body, err := r.Open(r.ctx, d)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(body, most))
	return content, errors.Join(err, body.Close())
}
