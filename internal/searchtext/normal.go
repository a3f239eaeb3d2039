package searchtext

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// firstMark is the first character that may change a text without composed characters.
const firstMark = '\u0300'

// normal composes the characters of a text (Unicode's normalization form C). The three
// characters that would become ASCII stay as they are: the sign for kelvin, the Greek question
// mark and the varia.
func normal(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for {
		i := bytes.IndexFunc(text, becomesASCII)
		if i < 0 {
			return append(out, norm.NFC.Bytes(text)...)
		}
		_, n := utf8.DecodeRune(text[i:])
		out = append(append(out, norm.NFC.Bytes(text[:i])...), text[i:i+n]...)
		text = text[i+n:]
	}
}

func becomesASCII(r rune) bool { return r == '\u212a' || r == '\u037e' || r == '\u1fef' }

// spellings are a text as it is, composed, and decomposed.
func spellings(text string) []string {
	all := []string{text}
	for _, other := range []string{string(normal([]byte(text))), norm.NFD.String(text)} {
		if other != text {
			all = append(all, other)
		}
	}
	return all
}

// IsLiteral reports whether a character of a cleaned text is in the text before cleaning, too,
// beside the same neighbours: it is not composed of others, and no other character becomes it.
func IsLiteral(r rune) bool {
	if r < utf8.RuneSelf {
		return true
	}
	text := string(r)
	return norm.NFD.String(text) == text && norm.NFC.PropertiesString(text).CCC() == 0 && !replacements()[r]
}

// replaced are the ranges of the characters that normal replaces by others.
var replaced = [][2]rune{{0x340, 0x3ff}, {0x900, 0xfff}, {0x1f00, 0x2fff}, {0xf900, 0xfb4f}, {0x1d100, 0x1d1ff}, {0x2f800, 0x2fa1f}}

// replacements are the characters that normal makes of others, besides composed ones.
var replacements = sync.OnceValue(func() map[rune]bool {
	all := map[rune]bool{}
	for _, x := range replaced {
		for r := x[0]; r <= x[1]; r++ {
			text := string(r)
			if composed := norm.NFC.String(text); composed != text && !strings.ContainsFunc(text, becomesASCII) {
				for _, to := range composed {
					all[to] = true
				}
			}
		}
	}
	return all
})
