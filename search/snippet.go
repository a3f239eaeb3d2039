package search

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/convlog/convlog/internal/searchtext"
)

// defaultContext is how many characters a snippet has around a match.
const defaultContext = 60

// addSnippet gives the hit the part of a text that shows most of the terms. folded is the
// same text folded, and marks are the places of that many terms in it.
func (h *Hit) addSnippet(text, folded []byte, marks []textRange, terms, context int) {
	if context <= 0 {
		context = defaultContext
	}
	marks = unfold(text, folded, marks)
	if terms == 0 {
		to := ahead(text, 0, 2*context)
		h.Snippet, h.After = string(text[:to]), to < len(text)
		return
	}
	first, last := window(text, marks, terms, context)
	if last < 0 {
		return
	}
	from := back(text, marks[first].From, context)
	to := ahead(text, marks[last].To, context)
	h.Snippet, h.Before, h.After = string(text[from:to]), from > 0, to < len(text)
	for _, m := range marks {
		if m.From >= from && m.To <= to {
			h.Matches = append(h.Matches, [2]int{m.From - from, m.To - from})
		}
	}
}

// window chooses the marks to show: the first run of marks near each other with all
// terms, or with the most different texts.
func window(text []byte, marks []textRange, terms, context int) (first, last int) {
	if len(marks) == 1 {
		return 0, 0
	}
	most, last := 0, -1
	for i := range marks {
		seen := map[string]bool{}
		j := i
		for ; j < len(marks) && (j == i || marks[j].To-marks[i].From <= 2*context); j++ {
			seen[string(searchtext.AppendFold(nil, text[marks[j].From:marks[j].To]))] = true
		}
		if len(seen) > most {
			most, first, last = len(seen), i, j-1
		}
		if i == 64 || most >= terms {
			break
		}
	}
	return first, last
}

// back is at most n characters before at, so that no word is cut.
func back(text []byte, at, n int) int {
	from := at
	for ; n > 0 && from > 0; n-- {
		_, size := utf8.DecodeLastRune(text[:from])
		from -= size
	}
	if from > 0 {
		if i := bytes.IndexByte(text[from:at], ' '); i >= 0 {
			from += i + 1
		}
	}
	return from
}

// ahead is at most n characters after at, so that no word is cut.
func ahead(text []byte, at, n int) int {
	to := at
	for ; n > 0 && to < len(text); n-- {
		_, size := utf8.DecodeRune(text[to:])
		to += size
	}
	if to < len(text) {
		if i := bytes.LastIndexByte(text[at:to], ' '); i >= 0 {
			to = at + i
		}
	}
	return to
}

// unfold turns ordered places in the folded text into places in the text itself.
func unfold(text, folded []byte, marks []textRange) []textRange {
	if isASCII(text) {
		return marks
	}
	places := make([]textRange, 0, len(marks))
	at, in := 0, 0 // the same place, in text and in folded
	reach := func(place int) int {
		for in < place {
			r, n := utf8.DecodeRune(text[at:])
			at += n
			in += utf8.RuneLen(searchtext.FoldRune(r))
		}
		return at
	}
	for _, m := range marks {
		from := reach(m.From)
		places = append(places, textRange{from, reach(m.To)})
	}
	return places
}

// isASCII reports whether text is ASCII. Its folded text then has the same offsets.
func isASCII(text []byte) bool {
	const highBits = 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		if binary.LittleEndian.Uint64(text)&highBits != 0 {
			return false
		}
	}
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
