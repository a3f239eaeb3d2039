package line

import "encoding/binary"

// hexValues has the value of each lower-case hex digit, and 0xff for every other byte.
// A table is much faster than branches, because the digits of a hash are random.
var hexValues = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i, c := range []byte("0123456789abcdef") {
		values[c] = byte(i)
	}
	return values
}()

// ParseHash parses 64 lower-case hex digits.
func ParseHash(text string) (h Hash, ok bool) {
	return h, len(text) == 2*len(h) && decodeHex(h[:], text)
}

// decodeHex fills dst from lower-case hex digits. len(src) must be 2·len(dst).
func decodeHex[T ~string | []byte](dst []byte, src T) bool {
	bad := byte(0)
	for i := range dst {
		hi, lo := hexValues[src[2*i]], hexValues[src[2*i+1]]
		bad |= hi | lo
		dst[i] = hi<<4 | lo
	}
	return bad < 16
}

// isHex reports whether b has only lower-case hex digits.
func isHex(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if !isHexWord(binary.LittleEndian.Uint64(b)) {
			return false
		}
	}
	bad := byte(0)
	for _, c := range b {
		bad |= hexValues[c]
	}
	return bad < 16
}

// isHexWord is isHex for eight bytes at once. For a byte below 0x80, each sum sets the
// high bit if the byte reaches the bound.
func isHexWord(w uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	digits := (w + each*(0x80-'0')) &^ (w + each*(0x80-'9'-1))
	letters := (w + each*(0x80-'a')) &^ (w + each*(0x80-'f'-1))
	return w&high == 0 && (digits|letters)&high == high
}
