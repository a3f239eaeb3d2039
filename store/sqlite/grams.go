package sqlite

import (
	"cmp"
	"slices"
	"strings"
)

// indexRules is the version of eventlog.SearchText, event.Fold and of
// the pieces made here. Whoever changes one of them counts it up.
const indexRules = 1

// The index knows an event by its grams: all runs of three bytes inside of its
// words, which are separated by spaces. What contains a term contains the
// term's grams; so those that have all of them are what a search looks at. In
// UTF-8 three bytes are one character of most writing without spaces, so that
// even one such character is found by the index; of ASCII it takes three.
const gramBytes = 3

// unreadGram is of events whose text cannot be told: each search looks at them.
const unreadGram = "unread"

// gramAlphabet writes 5 bits as a character.
const gramAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// gramSet gathers the grams of one text at a time.
type gramSet struct {
	seen  []uint64 // a bit for each gram there can be
	found []uint32 // those that were seen
	text  []byte
}

func newGramSet() *gramSet { return &gramSet{seen: make([]uint64, 1<<(8*gramBytes)/64)} }

// of gives the grams of a folded text as the words of the index's own text, each
// once.
func (g *gramSet) of(text string) string {
	for i := 0; i+gramBytes <= len(text); i++ {
		if space := strings.IndexByte(text[i:i+gramBytes], ' '); space >= 0 {
			i += space
			continue
		}
		g.add(gramAt(text, i))
	}
	g.text = g.text[:0]
	for _, gram := range g.found {
		g.text = appendGram(g.text, gram)
		g.seen[gram/64] = 0
	}
	g.found = g.found[:0]
	return string(g.text)
}

func (g *gramSet) add(gram uint32) {
	bit := uint64(1) << (gram % 64)
	if g.seen[gram/64]&bit == 0 {
		g.seen[gram/64] |= bit
		g.found = append(g.found, gram)
	}
}

func gramAt(text string, i int) uint32 {
	return uint32(text[i])<<16 | uint32(text[i+1])<<8 | uint32(text[i+2])
}

// appendGram appends a gram as five characters and a space.
func appendGram(to []byte, gram uint32) []byte {
	for shift := 20; shift >= 0; shift -= 5 {
		to = append(to, gramAlphabet[gram>>shift&31])
	}
	return append(to, ' ')
}

// queryGrams is how many grams the index is asked for of each term: those that
// are likely to be rare. Each is looked up in every part of the index, and what
// has all of them and not the term is told apart later.
const queryGrams = 4

// indexQuery is what to ask the index for terms; ok is false when it cannot help:
// all of them are too short.
func indexQuery(terms []string) (query string, ok bool) {
	var all []string
	for _, term := range terms {
		grams := gramsIn(term)
		slices.SortFunc(grams, func(a, b uint32) int { return cmp.Or(commonness(a)-commonness(b), cmp.Compare(a, b)) })
		grams = slices.Compact(grams)
		for _, gram := range grams[:min(len(grams), queryGrams)] {
			word := appendGram([]byte{'"'}, gram)
			word[len(word)-1] = '"'
			all = append(all, string(word))
		}
	}
	return "(" + strings.Join(all, " AND ") + `) OR "` + unreadGram + `"`, len(all) > 0
}

// commonness orders grams by how common their bytes are, as far as that can be
// said of all texts.
func commonness(gram uint32) (sum int) {
	const rareFirst = "qzjxkv9876w5y4gbf3pm2ucd10lhr._/-nsioate"
	for shift := 0; shift < 24; shift += 8 {
		sum += 1 + strings.IndexByte(rareFirst, byte(gram>>shift))
	}
	return sum
}

// gramsIn are the grams of a folded text in order.
func gramsIn(text string) (grams []uint32) {
	for i := 0; i+gramBytes <= len(text); i++ {
		if space := strings.IndexByte(text[i:i+gramBytes], ' '); space >= 0 {
			i += space
			continue
		}
		grams = append(grams, gramAt(text, i))
	}
	return grams
}

// docOf is the id of an event's row in the index; ok is false where there is no
// room for it.
func docOf(session, seq int64) (doc int64, ok bool) {
	return session<<32 | seq, 0 <= session && session < 1<<31 && 0 <= seq && seq < 1<<32
}
