package search

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/searchtext"
)

// The errors of this package. Events also returns errors of package eventlog.
var (
	// ErrInvalidQuery: a query without words, or a pattern that is malformed or that
	// every text has. It matches event.ErrInvalid.
	ErrInvalidQuery = fmt.Errorf("%w: the query has no words", event.ErrInvalid)
)

// Terms returns the words and phrases of the query's text, folded (searchtext.Fold), each
// once. A text without words is ErrInvalidQuery.
//
// A phrase begins with a double quote at the start of a word, and ends with the
// next quote before white space or the end. A quote that is not closed, a quote
// inside a word, and two quotes with nothing between them are ordinary characters.
func (q Query) Terms() ([]string, error) {
	var terms []string
	seen := map[string]bool{}
	for rest := strings.TrimFunc(q.Text, unicode.IsSpace); rest != ""; {
		var word string
		word, rest = cutWord(rest)
		term := searchtext.Fold(searchtext.Clean(word))
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

// cutWord splits text after its first word or phrase.
func cutWord(text string) (word, rest string) {
	if phrase, rest, ok := cutPhrase(text); ok {
		return phrase, rest
	}
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// cutPhrase splits text after a quoted phrase, if it begins with one that is not
// empty.
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
