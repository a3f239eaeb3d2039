// Package head looks at the beginning of a file, to tell its format.
package head

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Head is the beginning of a value: of an object the members, of which the last
// may be cut off.
type Head map[string][]byte

// Begins reads the beginning of a file, or of a member of a Head, whose end may
// be missing. Of an array it reads the first element, or of lists in it the
// first of those. It is nil where there is no object.
func Begins(head []byte) Head {
	for head = Trim(head); len(head) > 0 && head[0] == '['; head = Trim(head) {
		head = head[1:]
	}
	return Object(head)
}

// Object reads the beginning of an object; it is nil where there is none.
func Object(head []byte) Head {
	head = Trim(head)
	d := jsontext.NewDecoder(bytes.NewBuffer(head), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	h := Head{}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}
		member, at := name.String(), d.InputOffset()
		v, err := d.ReadValue()
		if err != nil {
			h[member] = bytes.TrimLeft(head[at:], ": \t\r\n")
			break
		}
		h[member] = bytes.Clone(v)
	}
	return h
}

// Lines yields the lines of the beginning of a file, but empty ones. The last may
// be cut off.
func Lines(head []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(Trim(head)) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}

// Trim leaves out what may stand before the first value of a file.
func Trim(b []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), " \t\r\n")
}

// Has reports whether it has all of the members.
func (h Head) Has(names ...string) bool {
	for _, name := range names {
		if _, ok := h[name]; !ok {
			return false
		}
	}
	return len(h) > 0
}

// In is the beginning of what a member holds.
func (h Head) In(name string) Head { return Begins(h[name]) }

// Text is a member that is a string; empty if it is none, or cut off.
func (h Head) Text(name string) string {
	v := jsontext.Value(h[name])
	if v.Kind() != '"' {
		return ""
	}
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return ""
	}
	return string(b)
}

// IsArray reports whether a file begins an array.
func IsArray(head []byte) bool {
	head = Trim(head)
	return len(head) > 0 && head[0] == '['
}
