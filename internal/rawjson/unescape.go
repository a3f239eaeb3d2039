package rawjson

import (
	"bytes"
	"strings"
	"unicode/utf16"
)

// unescaped decodes the content of a scanned string.
func unescaped(b []byte) string {
	var text strings.Builder
	text.Grow(len(b))
	for {
		n := bytes.IndexByte(b, '\\')
		if n < 0 {
			text.Write(b)
			return text.String()
		}
		text.Write(b[:n])
		if c := plainOf[b[n+1]]; c != 0 {
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

// plainOf is the character of a two-byte escape, by its second byte; 0 is none.
var plainOf = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
