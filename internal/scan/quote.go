package scan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// AppendQuote appends text as an encoder quotes it, with the fewest escapes. It is
// not sure of text that is no valid UTF-8, or has control characters besides line
// breaks and tabs.
func AppendQuote(dst []byte, text string) (quoted []byte, sure bool) {
	if !utf8.ValidString(text) {
		return dst, false
	}
	dst = append(dst, '"')
	for {
		n := special(text)
		dst = append(dst, text[:n]...)
		if n == len(text) {
			return append(dst, '"'), true
		}
		switch text[n] {
		case '"', '\\':
			dst = append(dst, '\\', text[n])
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			return dst, false
		}
		text = text[n+1:]
	}
}

// special is where the first character stands that cannot stand in quotes by itself;
// the length if none does.
func special(text string) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64([]byte(text[i : i+8]))
		// Of bytes below 0x80, a difference has the high bit where the byte is below;
		// the lowest such bit is that of the first.
		quote, slash := w^('"'*each), w^('\\'*each)
		if found := ((quote - each) | (slash - each) | (w - 0x20*each)) &^ w & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c < 0x20 || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}
