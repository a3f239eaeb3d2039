// Package head parses the beginning of a file, for importers that detect their
// format.
package head

import (
	"bytes"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Head holds the members of an object. The value of the last one may be truncated.
type Head map[string][]byte

// Begins parses the first object of a file or of a member of a Head. The object may
// be in an array, and its end may be missing. Begins returns nil if there is no
// object.
func Begins(head []byte) Head {
	for head = Trim(head); len(head) > 0 && head[0] == '['; head = Trim(head) {
		head = head[1:]
	}
	return Object(head)
}

// Object parses an object that may be truncated. It is nil for any other value.
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

// Lines yields the lines of the beginning of a file, without empty lines. The last
// line may be truncated.
func Lines(head []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(Trim(head)) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}

// Trim removes the byte order mark and the white space before the first value.
func Trim(b []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), " \t\r\n")
}

// Has reports whether h has all of the members.
func (h Head) Has(names ...string) bool {
	for _, name := range names {
		if _, ok := h[name]; !ok {
			return false
		}
	}
	return len(h) > 0
}

// In is the Head of a member.
func (h Head) In(name string) Head { return Begins(h[name]) }

// Text is the text of a member; empty if the member is no string, or truncated.
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

// IsUUID reports whether a text is a UUID in its usual form.
func IsUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		isDash := i == 8 || i == 13 || i == 18 || i == 23
		if isDash != (s[i] == '-') || !isDash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
			return false
		}
	}
	return true
}
