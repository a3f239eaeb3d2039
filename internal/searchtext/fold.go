// Package searchtext extracts the text of events for searches, normalizes text, and orders
// the sessions of a search.
//
// Package search says which members of a payload are text.
package searchtext

import (
	"encoding/binary"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fold folds case by Unicode's simple case folding: texts that differ only in case
// become equal. ASCII letters become lower case; no other rune folds to an ASCII
// letter, so the ASCII characters of a text can be searched by themselves.
func Fold(text string) string { return string(AppendFold(nil, []byte(text))) }

// AppendFold appends the folded text, which is valid UTF-8.
func AppendFold(to, text []byte) []byte {
	to = slices.Grow(to, len(text))
	for i := 0; i < len(text); {
		for ; i+8 <= len(text); i += 8 {
			w := binary.LittleEndian.Uint64(text[i:])
			if w&highBits != 0 {
				break
			}
			to = binary.LittleEndian.AppendUint64(to, lowerBytes(w))
		}
		for word := min(i+8, len(text)); i < word; {
			c := text[i]
			if c < utf8.RuneSelf {
				to = append(to, lower[c])
				i++
				continue
			}
			r, n := utf8.DecodeRune(text[i:])
			to = utf8.AppendRune(to, FoldRune(r))
			i += n
		}
	}
	return to
}

// Masks for eight bytes at a time.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// lowerBytes folds eight ASCII characters.
func lowerBytes(w uint64) uint64 {
	fromA, afterZ := w+(0x80-'A')*eachByte, w+(0x80-'Z'-1)*eachByte
	upper := (fromA ^ afterZ) & highBits // the high bit of each upper-case letter
	return w | upper>>2
}

// FoldRune folds one character.
func FoldRune(r rune) rune {
	if r < utf8.RuneSelf {
		return rune(lower[r])
	}
	first := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if other < first && other >= utf8.RuneSelf {
			first = other
		}
	}
	return first
}

// lower folds ASCII.
var lower = func() (table [utf8.RuneSelf]byte) {
	for c := range table {
		table[c] = byte(c)
		if 'A' <= c && c <= 'Z' {
			table[c] += 'a' - 'A'
		}
	}
	return table
}()

// Clean trims white space and makes every run of it one space. Characters get their composed
// form (see normal). Bytes that are not UTF-8 become U+FFFD.
func Clean(text string) string { return string(appendClean(nil, []byte(text))) }

// appendClean appends a cleaned text, after a space if there is text before it.
func appendClean(to, text []byte) []byte {
	before := len(to)
	to, composed := appendComposed(to, text, false)
	if !composed {
		to, _ = appendComposed(to[:before], normal(text), true)
	}
	return to
}

// appendComposed is appendClean for a text whose characters are composed; ok is false if they
// are not.
func appendComposed(to, text []byte, composed bool) (_ []byte, ok bool) {
	to = slices.Grow(to, len(text)+1)
	gap := len(to) > 0
	for i := 0; i < len(text); {
		c := text[i]
		if ' ' < c && c < utf8.RuneSelf {
			if gap {
				to = append(to, ' ')
				gap = false
			}
			n := cleanRun(text[i:])
			to = append(to, text[i:i+n]...)
			i += n
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if r >= firstMark && !composed {
			if !norm.NFC.IsNormal(text) {
				return to, false
			}
			composed = true
		}
		i += n
		if unicode.IsSpace(r) {
			gap = len(to) > 0
			continue
		}
		if gap {
			to = append(to, ' ')
			gap = false
		}
		to = utf8.AppendRune(to, r)
	}
	return to, true
}

// cleanRun is the length of a prefix of text that cleaning does not change: ASCII
// without control characters, single spaces between words. text begins with a word.
func cleanRun(text []byte) int {
	i, before := 0, uint64(0) // before is 0x80 after a space
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		spaces := zeroBytes(w ^ ' '*eachByte)
		if w&highBits != 0 || (w-' '*eachByte)&^w&highBits != 0 || spaces&(spaces<<8|before) != 0 {
			break
		}
		before = spaces >> 56
	}
	for i < len(text) && ' ' < text[i] && text[i] < utf8.RuneSelf {
		i++
	}
	if i > 0 && text[i-1] == ' ' { // the rest of the text decides whether the space stays
		i--
	}
	return i
}

// zeroBytes returns the high bit of each zero byte of w, which has ASCII bytes only.
func zeroBytes(w uint64) uint64 { return (highBits - w) & highBits }
