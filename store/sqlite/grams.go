package sqlite

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
)

// indexRules is the version of the text rules: searchtext.Reader, searchtext.Fold and the
// grams of this file. Increment it when one of them changes; stores then rebuild the
// index.
const indexRules = 2

// The index stores the grams of an event: all sequences of three bytes inside the
// words of its folded text. Spaces separate words. A text that contains a term
// contains all grams of the term, so a search reads only the events that have all of
// them. In UTF-8 one character of Chinese or Japanese has three bytes, so the index
// finds a single such character. An ASCII term needs three characters.
const gramBytes = 3

// unreadGram marks an event whose text is unreadable. Every search reads the event.
const unreadGram = "unread"

// gramAlphabet encodes 5 bits as one character.
const gramAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// gramSet collects the distinct grams of one text at a time.
type gramSet struct {
	seen  []uint64 // one bit for each possible gram
	found []uint32 // distinct grams in order
	text  []byte
}

func newGramSet() *gramSet { return &gramSet{seen: make([]uint64, 1<<(8*gramBytes)/64)} }

// words returns the distinct grams of a folded text as words for the index, separated
// by spaces.
func (g *gramSet) words(text string) string {
	g.text = g.text[:0]
	for _, gram := range g.distinct(text) {
		g.text = appendGram(g.text, gram)
	}
	return string(g.text)
}

// sampleOf returns the gram of a folded text that is likely to be the rarest, as a word for the
// index; "" if there is no gram. One gram is enough: the index has all grams of an event or none.
func sampleOf(text string) string {
	best, least := uint32(0), math.MaxInt
	for gram := range gramsIn(text) {
		if common := commonness(gram); common < least {
			best, least = gram, common
		}
	}
	if least == math.MaxInt {
		return ""
	}
	return string(appendGram(nil, best))
}

// distinct returns the distinct grams of a folded text. The next call overwrites them.
func (g *gramSet) distinct(text string) []uint32 {
	g.found = g.found[:0]
	for gram := range gramsIn(text) {
		g.add(gram)
	}
	for _, gram := range g.found {
		g.seen[gram/64] = 0
	}
	return g.found
}

func (g *gramSet) add(gram uint32) {
	bit := uint64(1) << (gram % 64)
	if g.seen[gram/64]&bit == 0 {
		g.seen[gram/64] |= bit
		g.found = append(g.found, gram)
	}
}

// appendGram appends a gram as five characters and a space.
func appendGram(to []byte, gram uint32) []byte {
	for shift := 20; shift >= 0; shift -= 5 {
		to = append(to, gramAlphabet[gram>>shift&31])
	}
	return append(to, ' ')
}

// queryGrams is the number of grams per term in a query. The index looks up each gram
// separately. The caller of Search checks the events that match.
const queryGrams = 4

// rarest returns the distinct grams that are likely to be rare, at most queryGrams. It
// reorders grams. The index looks up a rare gram several hundred times as fast as a
// common one.
func rarest(grams []uint32) []uint32 {
	slices.SortFunc(grams, func(a, b uint32) int { return cmp.Or(commonness(a)-commonness(b), cmp.Compare(a, b)) })
	grams = slices.Compact(grams)
	return grams[:min(len(grams), queryGrams)]
}

// indexQuery returns the index query for terms. ok is false if all terms are shorter
// than a gram: the index cannot help then.
func indexQuery(terms []string) (query string, ok bool) {
	var all []string
	for _, term := range terms {
		for _, gram := range rarest(slices.Collect(gramsIn(term))) {
			word := appendGram([]byte{'"'}, gram)
			word[len(word)-1] = '"'
			all = append(all, string(word))
		}
	}
	return "(" + strings.Join(all, " AND ") + `) OR "` + unreadGram + `"`, len(all) > 0
}

// commonness estimates how common the bytes of a gram are in typical texts. A rare
// gram has a low value.
func commonness(gram uint32) (sum int) {
	const rareFirst = "qzjxkv9876w5y4gbf3pm2ucd10lhr._/-nsioate"
	for shift := 0; shift < 24; shift += 8 {
		sum += 1 + strings.IndexByte(rareFirst, byte(gram>>shift))
	}
	return sum
}

// gramsIn yields the grams of a folded text in order, with duplicates.
func gramsIn(text string) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		gram, length := uint32(0), 0 // of the word up to i
		for i := range len(text) {
			if text[i] == ' ' {
				length = 0
				continue
			}
			gram = gram<<8&0xffffff | uint32(text[i])
			if length++; length >= gramBytes && !yield(gram) {
				return
			}
		}
	}
}

// maxDocSeq is the highest seq in a row id of the index.
const maxDocSeq = 1<<32 - 1

// docOf returns the row id of an event in the index. ok is false if the session's key
// or the seq is too large for a row id.
func docOf(session, seq int64) (doc int64, ok bool) {
	return session<<32 | seq, 0 <= session && session < 1<<31 && 0 <= seq && seq <= maxDocSeq
}
