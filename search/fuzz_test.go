package search

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/searchtext"
)

// FuzzSearch searches any text, written as JSON in two ways, for any query. The check of
// the raw JSON must not miss a hit, and a snippet shows the words of the query.
func FuzzSearch(f *testing.F) {
	f.Add("the foo-bar of store.go", "foo-bar", false)
	f.Add(`a "quoted" \path/`, `"quoted" path/`, false)
	f.Add("Привет, Мир 日本語 👍", "мир 本", true)
	f.Add("\u212a\u017f kS Ⱥⱥ", "\u212a ⱥ", true)
	f.Add("one  two\n three\u00a0four", `"two three four"`, false)
	f.Fuzz(func(t *testing.T, text, query string, escaped bool) {
		terms, err := Query{Text: query}.Terms()
		if err != nil || !utf8.ValidString(text) {
			return
		}
		data := quotedAnyhow(t, text, escaped)
		e := event.Event{Type: "test:text", Data: data}
		found, err := (&searchtext.Reader{}).Read(context.Background(), &e)
		if err != nil {
			t.Fatal(err)
		}
		checkFound(t, newMatcher(terms), data, string(found))
	})
}

// quotedAnyhow is a JSON string, with escapes that need not be if escaped is true.
func quotedAnyhow(t *testing.T, text string, escaped bool) jsontext.Value {
	quoted := []byte{'"'}
	for _, r := range text {
		switch {
		case escaped && r == 'a':
			quoted = append(quoted, `\u0061`...)
		case escaped && r == '/':
			quoted = append(quoted, `\/`...)
		default:
			one, err := jsontext.AppendQuote(nil, string(r))
			if err != nil {
				t.Fatal(err)
			}
			quoted = append(quoted, one[1:len(one)-1]...)
		}
	}
	return append(quoted, '"')
}

func checkFound(t *testing.T, m *matcher, data jsontext.Value, text string) {
	folded := searchtext.Fold(text)
	if searchtext.Fold(folded) != folded || !utf8.ValidString(folded) {
		t.Fatalf("%q is folded to %q, and that to %q", text, folded, searchtext.Fold(folded))
	}
	if !m.matches([]byte(folded)) {
		return
	}
	if !m.may(data) {
		t.Fatalf("%s is passed over, which holds %q", data, m.terms)
	}
	var s Hit
	s.addSnippet([]byte(text), []byte(folded), m.find([]byte(folded)), len(m.terms), 3)
	if !utf8.ValidString(s.Snippet) || !strings.Contains(text, s.Snippet) || len(s.Matches) == 0 {
		t.Fatalf("snippet %q of %q for %q: %v", s.Snippet, text, m.terms, s.Matches)
	}
	at := 0
	for _, r := range s.Matches {
		if r[0] < at || r[1] <= r[0] || r[1] > len(s.Snippet) {
			t.Fatalf("snippet %q has matches %v", s.Snippet, s.Matches)
		}
		marked, holds := searchtext.Fold(s.Snippet[r[0]:r[1]]), false
		for _, term := range m.terms {
			holds = holds || strings.Contains(marked, term)
		}
		if at = r[1]; !holds {
			t.Fatalf("snippet %q marks %q for %q", s.Snippet, marked, m.terms)
		}
	}
}
