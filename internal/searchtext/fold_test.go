package searchtext_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/internal/searchtext"
)

// Fold makes the same texts equal as EqualFold, except for characters outside ASCII
// that EqualFold folds to ASCII letters.
func TestFold(t *testing.T) {
	for _, c := range [][2]string{{"STRASSE", "strasse"}, {"Привет", "ПРИВЕТ"}, {"Σίσυφος", "ΣΊΣΥΦΟΣ"}, {"ǅ", "ǆ"}, {"µ", "μ"}, {"Ⱥ", "ⱥ"}} {
		if searchtext.Fold(c[0]) != searchtext.Fold(c[1]) || !strings.EqualFold(c[0], c[1]) {
			t.Errorf("%q and %q differ", c[0], c[1])
		}
	}
	for _, c := range [][2]string{{"\u212a", "k"}, {"\u017f", "s"}, {"ß", "ss"}, {"é", "e"}} {
		if searchtext.Fold(c[0]) == searchtext.Fold(c[1]) {
			t.Errorf("%q and %q are the same", c[0], c[1])
		}
	}
}
