package searchtext

import (
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// FoldFully cleans a text and folds it by Unicode's full case folding of its compatibility form
// (NFKC): texts become equal in which a reader sees the same letters, "straße" and "STRASSE",
// composed and decomposed, wide and narrow. Other than Fold, it makes ASCII letters of other
// characters, so an index of ASCII pieces does not find them all. It is for erasures, which
// read every text.
func FoldFully(text string) string {
	text = Clean(text)
	if IsASCII(text) {
		return Fold(text)
	}
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(norm.NFKD.String(text))))
}

// IsASCII reports whether a text has no other characters.
func IsASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
