package searchtext_test

import (
	"testing"

	"github.com/convlog/convlog/internal/searchtext"
)

func TestFoldFully(t *testing.T) {
	for _, c := range [][2]string{
		{"STRASSE", "straße"}, {"Straße", "STRAẞE"}, {"Jose\u0301 M", "josé m"}, {"\u212b", "a\u030a"}, {"ﬁle", "FILE"}, {"４７１１", "4711"},
		{"ſecret", "SECRET"}, {"\u212aey", "key"}, {"ΣΊΣΥΦΟΣ", "σίσυφος"}, {"a  b\n", "A B"}, {"\u1e9b\u0323", "\u1e69"}, {"한글", "\u1112\u1161\u11ab\u1100\u1173\u11af"},
		{"a\u0315\u0300", "a\u0300\u0315"}, {"ᾳ", "ΑΙ"},
	} {
		if a, b := searchtext.FoldFully(c[0]), searchtext.FoldFully(c[1]); a != b {
			t.Errorf("%q and %q differ: %q and %q", c[0], c[1], a, b)
		}
	}
	for _, c := range [][2]string{{"e", "é"}, {"a", "b"}, {"1", "2"}} {
		if searchtext.FoldFully(c[0]) == searchtext.FoldFully(c[1]) {
			t.Errorf("%q and %q are the same", c[0], c[1])
		}
	}
}
