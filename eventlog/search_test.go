package eventlog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
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
		got, err := eventlog.Query{Text: c.text}.Terms()
		for i := range c.want {
			c.want[i] = eventlog.FoldText(c.want[i])
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.text, got, err, c.want)
		}
	}
	for _, empty := range []string{"", " ", "\t\n　"} {
		if _, err := (eventlog.Query{Text: empty}).Terms(); !errors.Is(err, eventlog.ErrInvalidQuery) {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

// Folding is what EqualFold does, but for the characters that fold to ASCII
// letters and are none.
func TestFoldText(t *testing.T) {
	for _, c := range [][2]string{{"STRASSE", "strasse"}, {"Привет", "ПРИВЕТ"}, {"Σίσυφος", "ΣΊΣΥΦΟΣ"}, {"ǅ", "ǆ"}, {"µ", "μ"}, {"Ⱥ", "ⱥ"}} {
		if eventlog.FoldText(c[0]) != eventlog.FoldText(c[1]) || !strings.EqualFold(c[0], c[1]) {
			t.Errorf("%q and %q differ", c[0], c[1])
		}
	}
	for _, c := range [][2]string{{"\u212a", "k"}, {"\u017f", "s"}, {"ß", "ss"}, {"é", "e"}} {
		if eventlog.FoldText(c[0]) == eventlog.FoldText(c[1]) {
			t.Errorf("%q and %q are the same", c[0], c[1])
		}
	}
}
