package main

import (
	"bufio"
	"strings"
	"testing"
)

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "検索": 4, "한국": 4, "👍": 2, "ｆｕｌｌ": 8, "a\u200bb": 2, "…→": 2} {
		if got := columns(text); got != want {
			t.Errorf("%q has %d columns, want %d", text, got, want)
		}
	}
}

func TestBriefCutsByColumns(t *testing.T) {
	for text, want := range map[string]string{"検索検索": "検索…", "検索a": "検索a", "ab検索": "ab検…", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301": "e\u0301e\u0301e\u0301e\u0301…"} {
		if got := brief(text, 5); got != want {
			t.Errorf("brief(%q) is %q, want %q", text, got, want)
		}
	}
}

func TestWideCellsAlign(t *testing.T) {
	var b strings.Builder
	p := &printer{w: bufio.NewWriter(&b)}
	p.table([]string{"A", "B"}, [][]string{{"検索", "1"}, {"abcd", "2"}})
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	if want := "A     B\n検索  1\nabcd  2\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
