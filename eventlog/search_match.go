package eventlog

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// matcher finds the terms of a query in the text of events. It is not changed
// once made.
type matcher struct {
	terms   []string // folded
	bytes   [][]byte // the same
	needles []needle // for some of the terms
}

func newMatcher(terms []string) *matcher {
	m := &matcher{terms: terms}
	for _, term := range terms {
		m.bytes = append(m.bytes, []byte(term))
		if n, ok := newNeedle(term); ok {
			m.needles = append(m.needles, n)
		}
	}
	return m
}

// may reports whether the text of data can hold the terms; true is no promise.
// It looks at the JSON as it stands. What could be any character's escape may be
// anything.
func (m *matcher) may(data jsontext.Value) bool {
	for i := range m.needles {
		if !m.needles[i].in(data) {
			return hasUnicodeEscape(data)
		}
	}
	return true
}

// hasUnicodeEscape reports whether \u stands in JSON, or may.
func hasUnicodeEscape(data []byte) bool {
	for at := 0; ; at += 2 {
		i := bytes.IndexByte(data[at:], '\\')
		if i < 0 {
			return false
		}
		if at += i; at+1 < len(data) && data[at+1] == 'u' {
			return true
		}
		if at+2 > len(data) {
			return false
		}
	}
}

// matches reports whether a folded text holds all terms.
func (m *matcher) matches(folded []byte) bool {
	for _, term := range m.bytes {
		if !bytes.Contains(folded, term) {
			return false
		}
	}
	return true
}

// maxMarks bounds how often a term is looked up in one text.
const maxMarks = 1000

// find gives where the terms stand in a folded text, in order and apart.
func (m *matcher) find(folded string) []TextRange {
	var found []TextRange
	for _, term := range m.terms {
		for at := 0; len(found) < maxMarks*len(m.terms); {
			i := strings.Index(folded[at:], term)
			if i < 0 {
				break
			}
			found = append(found, TextRange{at + i, at + i + len(term)})
			at += i + len(term)
		}
	}
	slices.SortFunc(found, func(a, b TextRange) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To)) })
	return joined(found)
}

// joined makes one range of those that overlap.
func joined(ranges []TextRange) []TextRange {
	apart := ranges[:0]
	for _, r := range ranges {
		if n := len(apart); n > 0 && r.From < apart[n-1].To {
			apart[n-1].To = max(apart[n-1].To, r.To)
			continue
		}
		apart = append(apart, r)
	}
	return apart
}

// needle is the piece of a term that stands in JSON as it is, but for the case
// of its letters: it is ASCII without what JSON may escape by a backslash and
// one character, or it has no letters with two cases.
type needle struct {
	text   []byte
	anchor int  // its character that is rarest in text
	exact  bool // nothing in it has another case
}

// newNeedle takes the longest such piece of a term.
func newNeedle(term string) (n needle, ok bool) {
	pieces := strings.FieldsFunc(term, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '\\' || r == '/' || r == utf8.RuneError || r >= utf8.RuneSelf && !caseless(r)
	})
	for _, piece := range pieces {
		if len(piece) > len(n.text) {
			n.text = []byte(piece)
		}
	}
	if len(n.text) == 0 {
		return n, false
	}
	n.exact = !bytes.ContainsFunc(n.text, func(r rune) bool { return 'a' <= r && r <= 'z' })
	for i, c := range n.text {
		if commonness(c) < commonness(n.text[n.anchor]) {
			n.anchor = i
		}
	}
	return n, true
}

// commonness orders characters by how often they stand in transcripts.
func commonness(c byte) int {
	const order = "zqxjkvw7986543ybg2+*&^%$#@!~?;()[]{}<>=|'`fp1cumhdl0s-.r_,:inoate"
	if i := strings.IndexByte(order, c); i >= 0 {
		return i + 1
	}
	return 0
}

// in reports whether the needle stands in data.
func (n *needle) in(data []byte) bool {
	if n.exact {
		return bytes.Contains(data, n.text)
	}
	c := n.text[n.anchor]
	if n.at(data, c) {
		return true
	}
	return 'a' <= c && c <= 'z' && n.at(data, c-'a'+'A')
}

// at is in for one case of the anchor.
func (n *needle) at(data []byte, anchor byte) bool {
	for from := n.anchor; from < len(data); from++ {
		i := bytes.IndexByte(data[from:], anchor)
		if i < 0 {
			return false
		}
		from += i
		if start := from - n.anchor; start+len(n.text) <= len(data) && n.equal(data[start:]) {
			return true
		}
	}
	return false
}

// equal reports whether data begins with the needle in any case.
func (n *needle) equal(data []byte) bool {
	for i, c := range n.text {
		d := data[i]
		if d < utf8.RuneSelf {
			d = lower[d]
		}
		if d != c {
			return false
		}
	}
	return true
}
