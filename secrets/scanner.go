package secrets

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Scanner finds secrets by rules. It takes time in proportion to the text, whatever the
// text is. It may be used concurrently.
type Scanner struct {
	rules    []compiled
	keywords *keywords
	masks    map[string]string // by the name of the rule
	// everywhere says that structural members have masks, too.
	everywhere bool
}

// Finding is a secret in a text: text[Start:End].
type Finding struct {
	Rule       string
	Start, End int
}

// New returns a scanner for rules, or an error that names the rule that it does not accept. If several
// rules find one secret, the first of them names it.
func New(rules ...Rule) (*Scanner, error) {
	s := &Scanner{masks: map[string]string{}}
	for i := range rules {
		c, err := rules[i].compile()
		if err != nil {
			return nil, err
		}
		if mask, twice := s.masks[c.name]; twice && mask != c.mask {
			return nil, fmt.Errorf("%w %q: another rule has the name with another mask", errInvalidRule, c.name)
		}
		s.rules = append(s.rules, c)
		s.masks[c.name] = c.mask
		s.everywhere = s.everywhere || rules[i].Mask != ""
	}
	s.keywords = newKeywords(rules)
	return s, nil
}

// Default returns the scanner for Rules.
func Default() *Scanner { return defaultScanner() }

var defaultScanner = sync.OnceValue(func() *Scanner {
	s, err := New(Rules()...)
	if err != nil {
		panic(err) // TestRulesCompile fails first
	}
	return s
})

// Find returns the secrets of a text, ordered, without overlaps. If two secrets
// overlap, the finding covers both and has the rule that comes first in the rule set.
func (s *Scanner) Find(text []byte) []Finding { return s.settle(text, merge(s.all(text))) }

// findEscaped is Find for a text that may be JSON: a secret may follow an escape that ends
// with a letter, such as \n.
func (s *Scanner) findEscaped(text []byte) []Finding {
	found := s.all(text)
	if blank := blankEscapes(text); blank != nil {
		found = append(found, s.all(blank)...)
	}
	return s.settle(text, merge(found))
}

// settle adds the secrets that the masks of found uncover: a mask cuts a word, and the rest
// of the word may be a secret, as in keys without a space between them.
func (s *Scanner) settle(text []byte, found []Finding) []Finding {
	for i := 0; i < len(found); {
		f := found[i]
		start, end := 0, len(text)
		if i > 0 {
			start = found[i-1].End
		}
		if left := s.beside(text, start, f.Start, f.Start); len(left) > 0 {
			found = slices.Insert(found, i, left...)
			continue
		}
		if i++; i < len(found) {
			end = found[i].Start
		}
		found = slices.Insert(found, i, s.beside(text, f.End, end, f.End)...)
	}
	return found
}

// aside is how many bytes beside a mask are read again. A longer secret is found without
// its neighbors.
const aside = 8 << 10

// beside returns the secrets of text[from:to], which is beside a mask, if the mask cuts a
// word at cut: at from or at to.
func (s *Scanner) beside(text []byte, from, to, cut int) (found []Finding) {
	if cut == 0 || cut == len(text) || !isWord(text[cut-1]) || !isWord(text[cut]) && text[cut] != '%' {
		return nil
	}
	first, last := from, to
	if cut == from {
		last = min(to, runeStart(text, min(len(text), from+aside)))
	} else {
		first = max(from, runeStart(text, max(0, to-aside)))
	}
	for _, f := range merge(s.all(text[first:last])) {
		f.Start, f.End = f.Start+first, f.End+first
		if f.Start > first || first == from { // else text before it was left out
			found = append(found, f)
		}
	}
	return found
}

// isWord reports whether c is a character of a word, as in \b of a pattern.
func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// blankEscapes returns a copy of text with spaces in the place of escapes of control
// characters; nil if it has none.
func blankEscapes(text []byte) (blank []byte) {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; strings.IndexByte("bfnrt", text[i]) >= 0 {
			if blank == nil {
				blank = bytes.Clone(text)
			}
			blank[i-1], blank[i] = ' ', ' '
		}
	}
	return blank
}

// all returns the matches of all rules in a text, and in the text that its percent escapes
// stand for.
func (s *Scanner) all(text []byte) []ranked {
	found := s.plain(text)
	plain, places := unescapePercent(text)
	if plain == nil {
		return found
	}
	for _, f := range s.plain(plain) {
		f.Start, f.End = places[f.Start], places[f.End]
		found = append(found, f)
	}
	return found
}

// plain returns the matches of all rules in a text as it is.
func (s *Scanner) plain(text []byte) (found []ranked) {
	regions, found := s.regions(text)
	for _, r := range regions {
		rule := &s.rules[r.rule]
		for _, m := range rule.matches(text, r) {
			from, to := m[0], m[1]
			if len(m) > 2 && m[2] >= 0 {
				from, to = m[2], m[3]
			}
			if rule.accepts(text[r.from+from : r.from+to]) {
				found = append(found, ranked{Finding{rule.name, r.from + from, r.from + to}, r.rule})
			}
		}
	}
	return found
}

// matches are the matches in a region, relative to its start. If the last one ends with
// the region, the secret may be longer: then the region grows.
func (c *compiled) matches(text []byte, r region) [][]int {
	for {
		all := c.pattern.FindAllSubmatchIndex(text[r.from:r.to], -1)
		n := len(all)
		if n == 0 || all[n-1][1] < r.to-r.from || r.to == len(text) || r.to-r.from >= longest {
			return all
		}
		r.to = runeStart(text, min(len(text), r.to+(r.to-r.from)))
	}
}

// longest is how long a region may grow for one secret, in bytes.
const longest = 64 << 10

// region is a part of a text in which a rule may match.
type region struct{ rule, from, to int }

// regions are the surroundings of the keywords of patterns in text. The regions of one rule
// do not overlap, so that each rule reads each byte once. found are the secrets of the rules
// with Match.
func (s *Scanner) regions(text []byte) (all []region, found []ranked) {
	var last map[int]int // the newest region of each rule
	s.keywords.each(text, func(rule, at int) {
		if c := &s.rules[rule]; c.match != nil {
			if start, end := c.match(text, at); start < end && c.accepts(text[start:end]) {
				found = append(found, ranked{Finding{c.name, start, end}, rule})
			}
			return
		}
		r := region{rule, runeStart(text, max(0, at-before)), runeStart(text, min(len(text), at+s.rules[rule].reach))}
		if i, ok := last[rule]; ok && r.from <= all[i].to {
			all[i].to = max(all[i].to, r.to)
			return
		}
		if last == nil {
			last = map[int]int{}
		}
		last[rule] = len(all)
		all = append(all, r)
	})
	return all, found
}

// runeStart is the first offset from i on where a character begins.
func runeStart(text []byte, i int) int {
	for n := i; n < len(text) && n < i+utf8.UTFMax; n++ {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return i
}

// ranked is a finding with the place of its rule in the rule set.
type ranked struct {
	Finding
	rule int
}

func merge(found []ranked) (merged []Finding) {
	slices.SortFunc(found, func(a, b ranked) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.rule, b.rule)) })
	rank := 0
	for _, f := range found {
		n := len(merged)
		if n == 0 || f.Start >= merged[n-1].End {
			merged, rank = append(merged, f.Finding), f.rule
			continue
		}
		merged[n-1].End = max(merged[n-1].End, f.End)
		if f.rule < rank {
			merged[n-1].Rule, rank = f.Rule, f.rule
		}
	}
	return merged
}

// Mask replaces each secret of a text by the mask of its rule. The findings are places in the
// old text. Without findings it returns text itself.
func (s *Scanner) Mask(text []byte) ([]byte, []Finding) {
	found := s.Find(text)
	if len(found) == 0 {
		return text, nil
	}
	return s.replace(text, found), found
}

// replace returns a copy of text with masks for the findings.
func (s *Scanner) replace(text []byte, found []Finding) []byte {
	out, at := make([]byte, 0, len(text)), 0
	for _, f := range found {
		out = append(append(out, text[at:f.Start]...), s.masks[f.Rule]...)
		at = f.End
	}
	return append(out, text[at:]...)
}

// names are the rules of findings, sorted, each once.
func names(found []Finding) (rules []string) {
	for _, f := range found {
		rules = append(rules, f.Rule)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}
