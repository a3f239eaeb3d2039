package event

import (
	"unicode"
	"unicode/utf8"
)

// Fold folds case by Unicode's simple case folding: texts that differ only in case
// become equal. ASCII letters become lower case; no other rune folds to an ASCII
// letter, so the ASCII characters of a text can be searched by themselves.
func Fold(text string) string { return string(AppendFold(nil, []byte(text))) }

// AppendFold appends the folded text, which is valid UTF-8.
func AppendFold(to, text []byte) []byte {
	for i := 0; i < len(text); {
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
	return to
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

// CleanText trims white space and makes every run of it one space. Bytes that are
// not UTF-8 become U+FFFD.
func CleanText(text string) string { return string(appendClean(nil, []byte(text))) }

// appendClean appends a cleaned text, after a space if there is text before it.
func appendClean(to, text []byte) []byte {
	gap := len(to) > 0
	for i := 0; i < len(text); {
		c := text[i]
		if ' ' < c && c < 0x7f {
			if gap {
				to = append(to, ' ')
				gap = false
			}
			n := plainRun(text[i:])
			to = append(to, text[i:i+n]...)
			i += n
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
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
	return to
}

// plainRun is the length of the ASCII text without white space that text begins
// with.
func plainRun(text []byte) int {
	for i, c := range text {
		if c <= ' ' || c >= 0x7f {
			return i
		}
	}
	return len(text)
}
