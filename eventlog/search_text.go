package eventlog

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// SearchText is what Search looks at in an event, as docs/FORMAT.md, chapter 7,
// has it: what a person reads of it, on one line. It is empty for redacted
// events, and for types that repeat what others say. open opens blobs: the
// event's own data, if it is spilled and not fetched, and bodies of text.
// The error is open's, or ErrInvalidData.
func SearchText(ctx context.Context, e *Event, open func(context.Context, Digest) (io.ReadCloser, error)) (string, error) {
	w := textWalker{ctx: ctx, open: open}
	text, err := w.event(e)
	return string(text), err
}

// maxTextBlob is how much of a body of text is searched.
const maxTextBlob = 16 << 20

// structure of a payload is not text but for the members named here. Of those
// of free JSON everything is.
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

// textWalker gathers the text of an event.
type textWalker struct {
	ctx  context.Context
	open func(context.Context, Digest) (io.ReadCloser, error)
	text []byte
	dec  jsontext.Decoder
}

func (w *textWalker) event(e *Event) ([]byte, error) {
	w.text = w.text[:0]
	switch e.Type.Name() {
	case ProjectionSnapshotted, AccountingFlushed:
		return w.text, nil
	}
	if v, ok := e.MetadataValue("repeats"); e.Redacted() || ok && string(v) == "true" {
		return w.text, nil
	}
	data := e.Data
	if digest, _, spilled := e.Spilled(); spilled && data == nil {
		body, err := w.read(digest, 1<<62)
		if err != nil {
			return nil, fmt.Errorf("data of event %d of session %q: %w", e.Seq, e.SessionID, err)
		}
		data = body
	}
	w.dec.Reset(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	if err := w.value(!e.Type.Known()); err != nil {
		return nil, fmt.Errorf("text of event %d of session %q: %w", e.Seq, e.SessionID, err)
	}
	return w.text, nil
}

// value takes the text of a JSON value; free values are text throughout.
func (w *textWalker) value(free bool) error {
	token, err := w.dec.ReadToken()
	if err != nil {
		return invalidText(err)
	}
	switch token.Kind() {
	case jsontext.KindString:
		w.add(token.String())
	case jsontext.KindNumber:
		if free {
			w.add(token.String())
		}
	case jsontext.KindBeginObject:
		return w.object(free)
	case jsontext.KindBeginArray:
		return w.array(free)
	}
	return nil
}

func invalidText(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", ErrInvalidData, err)
	}
	return err
}

func (w *textWalker) array(free bool) error {
	for w.dec.PeekKind() != jsontext.KindEndArray {
		if err := w.value(free); err != nil {
			return err
		}
	}
	_, err := w.dec.ReadToken()
	return invalidText(err)
}

func (w *textWalker) object(free bool) error {
	var body attachment
	for w.dec.PeekKind() != jsontext.KindEndObject {
		token, err := w.dec.ReadToken()
		if err != nil {
			return invalidText(err)
		}
		if err := w.member(token.String(), free, &body); err != nil {
			return err
		}
	}
	if _, err := w.dec.ReadToken(); err != nil {
		return invalidText(err)
	}
	return w.attached(&body)
}

// member takes the text of an object's member.
func (w *textWalker) member(name string, free bool, body *attachment) error {
	switch {
	case free:
		return w.value(true)
	case freeMembers[name]:
		return w.value(true)
	case textMembers[name]:
		return w.value(false)
	}
	value, err := w.dec.ReadValue()
	if err != nil {
		return invalidText(err)
	}
	body.note(name, value)
	return nil
}

// add adds a string, unless it is bytes in base64.
func (w *textWalker) add(text string) {
	if !encodedBytes(text) {
		w.text = appendClean(w.text, []byte(text))
	}
}

// encodedBytes reports whether a string is a body in base64 rather than text: it
// is long, and has no other characters, but for the beginning of a data URL.
func encodedBytes(text string) bool {
	const long = 1 << 10
	if len(text) < long {
		return false
	}
	if strings.HasPrefix(text, "data:") {
		if i := strings.Index(text[:128], ";base64,"); i >= 0 {
			text = text[i+len(";base64,"):]
		}
	}
	for i := range len(text) {
		if !base64Chars[text[i]] {
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

// attachment is what an object says of a body: a document, or an artifact's.
type attachment struct {
	mediaType string
	blob      Digest
	data      jsontext.Value // a string in base64
}

// note takes a member that is no text itself.
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
	var ref BlobRef
	if value.Kind() == jsontext.KindBeginObject && parseInto(value, &ref) == nil {
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

// attached takes the text of a body.
func (w *textWalker) attached(a *attachment) error {
	if !textualType(a.mediaType) {
		return nil
	}
	if body, err := base64.StdEncoding.DecodeString(stringOf(a.data)); err == nil {
		w.text = appendClean(w.text, body)
	}
	if a.blob == "" {
		return nil
	}
	body, err := w.read(a.blob, maxTextBlob)
	if err == nil {
		w.text = appendClean(w.text, body)
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

// read reads a blob, at most most bytes.
func (w *textWalker) read(d Digest, most int64) ([]byte, error) {
	r, err := w.open(w.ctx, d)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r, most))
	return body, errors.Join(err, r.Close())
}
