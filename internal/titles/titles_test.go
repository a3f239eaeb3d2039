package titles_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/internal/titles"
)

func TestTitles(t *testing.T) {
	for text, want := range map[string]string{
		"Implement the following plan:\n\n# Plan: Glaze\nFirst":                                "Plan: Glaze",
		"PLEASE IMPLEMENT THIS PLAN:\n## Fire it":                                              "Fire it",
		"<pr_description>\nConsider the following PR description:\nThe bowl leaks\nAt the rim": "The bowl leaks",
		"<task>\nGlaze":                 "Glaze",
		"<task>":                        "<task>",
		"Implement the following plan:": "Implement the following plan:",
		"Implement the following plan: glaze\n# No":      "Implement the following plan: glaze",
		strings.Repeat("word ", 15) + "token-0123456789": strings.Repeat("word ", 14) + "word…",
		strings.Repeat("字", 100):                         strings.Repeat("字", 79) + "…",
		strings.Repeat("t", 100):                         strings.Repeat("t", 20) + "…",
		strings.Repeat("字", 75) + "token-0123456789":     strings.Repeat("字", 75) + "…",
	} {
		if got := titles.Of(text); got != want {
			t.Errorf("%q: title %q", text, got)
		}
	}
}
