package rawjson

import (
	"bytes"
	"strings"
	"unicode/utf16"
)

// unescape decodes the content of a scanned string.
func unescape(b []byte) string {
	var text strings.Builder
	text.Grow(len(b))
	for {
		n := bytes.IndexByte(b, '\\')
		if n < 0 {
			text.Write(b)
			return text.String()
		}
		text.Write(b[:n])
		if c := simpleEscapes[b[n+1]]; c != 0 {
			text.WriteByte(c)
			b = b[n+2:]
			continue
		}
		size := unicodeEscape(b[n:])
		r := rune(unicodeDigits(b[n:]))
		if size > 6 {
			r = utf16.DecodeRune(r, rune(unicodeDigits(b[n+6:])))
		}
		text.WriteRune(r)
		b = b[n+size:]
	}
}

// simpleEscapes has the character of each two-byte escape, by its second byte.
var simpleEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
