package line

import (
	"bytes"
	"strings"
	"testing"
)

// TestIsHex tests every byte at every place of a word and after a word.
func TestIsHex(t *testing.T) {
	const digits = "0123456789abcdef"
	if !isHex([]byte(digits + "f")) {
		t.Errorf("isHex(%q) = false", digits+"f")
	}
	for place := range 11 {
		for c := range 256 {
			text := bytes.Repeat([]byte{'a'}, 11)
			text[place] = byte(c)
			if got, want := isHex(text), strings.IndexByte(digits, byte(c)) >= 0; got != want {
				t.Errorf("isHex(%q) = %v", text, got)
			}
		}
	}
}
