package mark

import "strings"

// Mask is the text that replaces a secret that the rule finds.
func Mask(rule string) string { return maskStart + rule + maskEnd }

const (
	maskStart = "[secret:"
	maskEnd   = "]"
)

// IsMaskOf reports whether masked is text, or is text with masks in the place of parts.
// It may report true for another text that has the same beginning, the same end and the
// same parts between the masks.
func IsMaskOf(masked, text string) bool {
	first, rest, more := cutMask(masked)
	if !more {
		return masked == text
	}
	text, ok := strings.CutPrefix(text, first)
	for ok && more {
		var piece string
		if piece, rest, more = cutMask(rest); !more {
			return strings.HasSuffix(text, piece)
		}
		_, text, ok = strings.Cut(text, piece)
	}
	return ok
}

// cutMask cuts a text around its first mask.
func cutMask(text string) (before, after string, found bool) {
	before, after, found = strings.Cut(text, maskStart)
	if found {
		_, after, found = strings.Cut(after, maskEnd)
	}
	if !found {
		return text, "", false
	}
	return before, after, true
}
