package records_test

import (
	"testing"

	"github.com/convlog/convlog/interop/internal/records"
)

func TestGeneratedTexts(t *testing.T) {
	for text, want := range map[string]bool{
		"<task-notification>\ndone</task-notification>":      true,
		" \n<environment_context>/srv</environment_context>": true,
		"Base directory for this skill: /s":                  true,
		"<recommended_plugins>\nA list of plugins":           true,
		"Read the <environment_context>":                     false,
		"<div>What is this?</div>":                           false,
		"":                                                   false,
	} {
		if got := records.IsGenerated(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
