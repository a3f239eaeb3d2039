package search_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/convlog/convlog/internal/searchtext"
	"github.com/convlog/convlog/search"
)

func TestQueryTerms(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"foo", []string{"foo"}},
		{"  Foo\tBAR foo ", []string{"foo", "bar"}},
		{"foo-bar store.go C++", []string{"foo-bar", "store.go", "c++"}},
		{`"Two  Words" x`, []string{"two words", "x"}},
		{`"unbalanced quote`, []string{`"unbalanced`, "quote"}},
		{`say"hi"`, []string{`say"hi"`}},
		{`"a"b" c`, []string{`a"b`, "c"}},
		{`""`, []string{`""`}},
		{`" "`, []string{`"`}},
		{"ÄÖ \u017f \u212a", []string{"äö", "\u017f", "\u212a"}},
		{"a\xff", []string{"a�"}},
		{"你好　世界", []string{"你好", "世界"}},
		{"AND OR NOT * NEAR(", []string{"and", "or", "not", "*", "near("}},
	} {
		got, err := search.Query{Text: c.text}.Terms()
		for i := range c.want {
			c.want[i] = searchtext.Fold(c.want[i])
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.text, got, err, c.want)
		}
	}
	for _, empty := range []string{"", " ", "\t\n　"} {
		if _, err := (search.Query{Text: empty}).Terms(); !errors.Is(err, search.ErrInvalidQuery) {
			t.Errorf("%q: %v", empty, err)
		}
	}
}
