package eventlog

import (
	"unicode"
	"unicode/utf8"
)

// FoldText makes texts equal that differ in the case of letters only: each
// character becomes the first of those that Unicode's simple case folding
// holds equal. ASCII letters become small ones, and no other character an ASCII
// letter: so a text's ASCII characters can be looked for by themselves.
func FoldText(text string) string { return string(appendFolded(nil, []byte(text))) }

// appendFolded appends the folded text, which is valid UTF-8.
func appendFolded(to, text []byte) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			to = append(to, lower[c])
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		to = utf8.AppendRune(to, foldRune(r))
		i += n
	}
	return to
}

// foldRune folds one character.
func foldRune(r rune) rune {
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

// caseless reports whether a character is folded by no other one.
func caseless(r rune) bool { return unicode.SimpleFold(r) == r }

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

// appendClean appends text without the white space at its ends, what lies
// between being single spaces. It appends a space before if there is a text in
// to that does not end with one.
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

// plainRun is how many ASCII characters that are no white space text begins
// with.
func plainRun(text []byte) int {
	for i, c := range text {
		if c <= ' ' || c >= 0x7f {
			return i
		}
	}
	return len(text)
}
