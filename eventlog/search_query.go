package eventlog

import (
	"strings"
	"unicode"
)

// ErrInvalidQuery: a query without anything to look for.
var ErrInvalidQuery = rule("query: it has no words")

// Terms are the words and phrases of the query's text, folded as FoldText
// does, each once. ErrInvalidQuery is a text of white space.
//
// A phrase begins with a double quote at the start of a word and ends with the
// next one that white space or nothing follows. A quote that is not closed, and
// one inside a word, is a character like others; so are two quotes with
// nothing between them.
func (q Query) Terms() ([]string, error) {
	var terms []string
	seen := map[string]bool{}
	for rest := strings.TrimFunc(q.Text, unicode.IsSpace); rest != ""; {
		var word string
		word, rest = cutWord(rest)
		term := FoldText(cleanText(word))
		if !seen[term] {
			seen[term] = true
			terms = append(terms, term)
		}
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	}
	if len(terms) == 0 {
		return nil, ErrInvalidQuery
	}
	return terms, nil
}

// cutWord cuts the first word or phrase off, which text begins with.
func cutWord(text string) (word, rest string) {
	if phrase, rest, ok := cutPhrase(text); ok {
		return phrase, rest
	}
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// cutPhrase cuts off a phrase in quotes that has something in it.
func cutPhrase(text string) (phrase, rest string, ok bool) {
	if text[0] != '"' {
		return "", "", false
	}
	for i := 1; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		phrase, rest = text[1:i], text[i+1:]
		if rest == "" || strings.IndexFunc(rest, unicode.IsSpace) == 0 {
			return phrase, rest, strings.TrimFunc(phrase, unicode.IsSpace) != ""
		}
	}
	return "", "", false
}

// cleanText makes white space of any length one space, leaves it out at the
// ends, and puts U+FFFD in the place of bytes that are no UTF-8.
func cleanText(text string) string {
	return string(appendClean(nil, []byte(text)))
}
