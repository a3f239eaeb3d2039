package line

import "encoding/binary"

// hexValues is the value of each lower-case hex digit, and 0xff for every other
// byte. A table costs far less than branches on the random digits of a hash.
var hexValues = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i, c := range []byte("0123456789abcdef") {
		values[c] = byte(i)
	}
	return values
}()

// ParseHash reads 64 lower-case hex digits.
func ParseHash(text string) (h Hash, ok bool) {
	return h, len(text) == 2*len(h) && decodeHex(h[:], text)
}

// decodeHex fills dst from lower-case hex digits; len(src) must be 2·len(dst).
func decodeHex[T ~string | []byte](dst []byte, src T) bool {
	bad := byte(0)
	for i := range dst {
		hi, lo := hexValues[src[2*i]], hexValues[src[2*i+1]]
		bad |= hi | lo
		dst[i] = hi<<4 | lo
	}
	return bad < 16
}

// isHex reports whether b consists of lower-case hex digits.
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

// isHexWord is isHex for eight bytes at once. Each sum sets a byte's high bit
// when the byte, itself below 0x80, reaches the bound.
func isHexWord(w uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	digits := (w + each*(0x80-'0')) &^ (w + each*(0x80-'9'-1))
	letters := (w + each*(0x80-'a')) &^ (w + each*(0x80-'f'-1))
	return w&high == 0 && (digits|letters)&high == high
}
