package search

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/searchtext"
)

// matcher finds the terms of a query in the text of events. It never changes.
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

// may returns false if the text of data cannot contain the terms. It searches the raw
// JSON. A \u escape matches any character.
func (m *matcher) may(data jsontext.Value) bool {
	for i := range m.needles {
		if !m.needles[i].in(data) {
			return hasUnicodeEscape(data)
		}
	}
	return true
}

// dataMember is the name of a member that may have a body in base64. A line has it once
// more, for its own data.
var dataMember = []byte(`"data"`)

// mayLine returns false if the text of the event of an intact line cannot contain the terms.
func (m *matcher) mayLine(text []byte) bool {
	return m.may(text) || line.MayListBlobs(text) || bytes.Count(text, dataMember) > 1
}

// hasUnicodeEscape reports whether JSON has a \u escape, or may have one.
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

// matches reports whether a folded text contains all terms.
func (m *matcher) matches(folded []byte) bool {
	for _, term := range m.bytes {
		if !bytes.Contains(folded, term) {
			return false
		}
	}
	return true
}

// maxMarks bounds how many matches of a term are found in one text.
const maxMarks = 1000

// find locates the terms in a folded text, in order and without overlap.
func (m *matcher) find(folded []byte) []textRange {
	var found []textRange
	for _, term := range m.bytes {
		for at := 0; len(found) < maxMarks*len(m.terms); {
			i := bytes.Index(folded[at:], term)
			if i < 0 {
				break
			}
			found = append(found, textRange{at + i, at + i + len(term)})
			at += i + len(term)
		}
	}
	slices.SortFunc(found, func(a, b textRange) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To)) })
	return joined(found)
}

// joined merges ranges that overlap.
func joined(ranges []textRange) []textRange {
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

// needle is a piece of a term that raw JSON contains literally, except for the case
// of its letters: ASCII without the characters that JSON may escape with a backslash
// and one character, or letters that have one case and one spelling only.
type needle struct {
	text   []byte
	anchor int  // the index of its rarest character
	exact  bool // none of its characters has another case
}

// newNeedle is the longest such piece of a term.
func newNeedle(term string) (n needle, ok bool) {
	pieces := strings.FieldsFunc(term, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '\\' || r == '/' || r == utf8.RuneError ||
			r >= utf8.RuneSelf && (unicode.SimpleFold(r) != r || !searchtext.IsLiteral(r))
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

// commonness orders characters by how often they occur in transcripts.
func commonness(c byte) int {
	const order = "zqxjkvw7986543ybg2+*&^%$#@!~?;()[]{}<>=|'`fp1cumhdl0s-.r_,:inoate"
	if i := strings.IndexByte(order, c); i >= 0 {
		return i + 1
	}
	return 0
}

// in reports whether data contains the needle.
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
			d = byte(searchtext.FoldRune(rune(d)))
		}
		if d != c {
			return false
		}
	}
	return true
}
