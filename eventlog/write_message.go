package eventlog

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/scan"
)

// messageWriter writes the payload of a message_added, several times faster than the
// encoder and with the same bytes. Like a scanner it is sure or it is not: where it
// is not, the encoder decides.
type messageWriter struct {
	buf    []byte
	scan   *scan.Scanner
	unsure bool
}

// writeMessage encodes m, if it is sure how.
func writeMessage(m *Message) (data jsontext.Value, sure bool) {
	s := scanners.Get().(*scan.Scanner)
	w := messageWriter{buf: make([]byte, 0, 256+len(m.Extra)+sizeOf(m.Parts)), scan: s}
	w.message(m)
	s.Begin(nil) // values may be large
	scanners.Put(s)
	return w.buf, !w.unsure
}

// sizeOf is about how many bytes parts take.
func sizeOf(parts []Part) (n int) {
	for i := range parts {
		p := &parts[i]
		n += 128 + len(p.Text) + len(p.Text)/32 + len(p.Signature) + len(p.Encrypted) + len(p.Arguments) + len(p.Value) + len(p.Extra)
		n += sizeOf(p.Content)
	}
	return n
}

func (w *messageWriter) message(m *Message) {
	w.buf = append(w.buf, `{"role":`...)
	w.quote(string(m.Role))
	w.text(`"provider":`, m.Provider)
	w.text(`"model":`, m.Model)
	w.text(`"response_id":`, m.ResponseID)
	w.text(`"stop_reason":`, m.StopReason)
	w.text(`"group":`, m.Group)
	if !m.Usage.IsZero() {
		w.usage(&m.Usage)
	}
	w.parts(`"parts":`, m.Parts, 0)
	w.value(`"extra":`, m.Extra)
	w.buf = append(w.buf, '}')
}

func (w *messageWriter) usage(u *Usage) {
	w.name(`"usage":`)
	w.buf = append(w.buf, '{')
	w.count(`"input_tokens":`, u.InputTokens)
	w.count(`"output_tokens":`, u.OutputTokens)
	w.count(`"cache_read_tokens":`, u.CacheReadTokens)
	w.count(`"cache_write_tokens":`, u.CacheWriteTokens)
	w.count(`"reasoning_tokens":`, u.ReasoningTokens)
	w.value(`"extra":`, u.Extra)
	w.buf = append(w.buf, '}')
}

func (w *messageWriter) parts(name string, parts []Part, depth int) {
	const deepest = 100
	if parts == nil || depth > deepest {
		w.unsure = w.unsure || parts != nil
		return
	}
	w.name(name)
	w.buf = append(w.buf, '[')
	for i := range parts {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.part(&parts[i], depth)
	}
	w.buf = append(w.buf, ']')
}

func (w *messageWriter) part(p *Part, depth int) {
	if p.Raw != nil && !p.Type.Known() || p.Data != nil {
		w.unsure = true
		return
	}
	w.buf = append(w.buf, `{"type":`...)
	w.quote(string(p.Type))
	w.text(`"id":`, p.ID)
	w.text(`"text":`, p.Text)
	w.text(`"signature":`, p.Signature)
	w.text(`"encrypted":`, p.Encrypted)
	w.flag(`"redacted":`, p.Redacted)
	w.text(`"media_type":`, p.MediaType)
	w.text(`"call_id":`, p.CallID)
	w.text(`"name":`, p.Name)
	w.blob(p.Blob)
	w.text(`"url":`, p.URL)
	w.value(`"arguments":`, p.Arguments)
	w.parts(`"content":`, p.Content, depth+1)
	w.flag(`"is_error":`, p.IsError)
	w.flag(`"interrupted":`, p.Interrupted)
	w.text(`"kind":`, p.Kind)
	w.value(`"value":`, p.Value)
	w.value(`"extra":`, p.Extra)
	w.buf = append(w.buf, '}')
}

func (w *messageWriter) blob(r BlobRef) {
	if r.IsZero() {
		return
	}
	w.name(`"blob":`)
	w.buf = append(w.buf, `{"blob":`...)
	w.quote(string(r.Blob))
	w.buf = append(w.buf, `,"bytes":`...)
	w.buf = append(strconv.AppendInt(w.buf, r.Bytes, 10), '}')
}

// name writes the name of a member, with its quotes and colon.
func (w *messageWriter) name(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, name...)
}

func (w *messageWriter) quote(text string) {
	quoted, sure := scan.AppendQuote(w.buf, text)
	w.buf = quoted
	w.unsure = w.unsure || !sure
}

func (w *messageWriter) text(name, text string) {
	if text != "" {
		w.name(name)
		w.quote(text)
	}
}

func (w *messageWriter) value(name string, v jsontext.Value) {
	if v != nil {
		w.name(name)
		w.buf = append(w.buf, v...)
		w.unsure = w.unsure || !w.scan.Sound(v)
	}
}

func (w *messageWriter) count(name string, n int64) {
	if n != 0 {
		w.name(name)
		w.buf = strconv.AppendInt(w.buf, n, 10)
	}
}

func (w *messageWriter) flag(name string, set bool) {
	if set {
		w.name(name)
		w.buf = append(w.buf, "true"...)
	}
}
