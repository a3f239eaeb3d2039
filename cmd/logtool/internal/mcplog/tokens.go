package mcplog

import "unicode/utf8"

// The budgets of an answer, in tokens.
const (
	leastBudget = 500
	usualBudget = 5_000
	mostBudget  = 20_000
)

// perToken is the weight of a token.
const perToken = 12

// longWord is the length at which letters and digits are no word of a language: base64 and
// hashes need more tokens.
const longWord = 20

// meter weighs text. Its weights are no tokens of a certain model: English and code have 3
// bytes per token, which is about a tenth more than the tokenizers cl100k and o200k count;
// digits, punctuation, other scripts and random text count more.
type meter struct {
	word int // letters and digits since the last other character
}

// weigh is the weight of the next character.
func (m *meter) weigh(r rune) int {
	letter := 'a' <= r|0x20 && r|0x20 <= 'z'
	digit := '0' <= r && r <= '9'
	if !letter && !digit {
		m.word = 0
	} else if m.word++; m.word > longWord {
		return 9
	}
	switch {
	case letter:
		return 4
	case r == ' ' || r == '\n':
		return 2
	case r < utf8.RuneSelf:
		return 6
	case r < 0x800:
		return 12
	case r <= 0xffff:
		return 18
	}
	return 36
}

// weight is the weight of a text.
func weight(text []byte) (n int) {
	var m meter
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		n += m.weigh(r)
		at += size
	}
	return n
}

// Tokens estimates the tokens of a text.
func Tokens(text string) int { return (weight([]byte(text)) + perToken - 1) / perToken }
