package claude_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/internal/importtest"
)

func FuzzImport(f *testing.F) {
	f.Add(strings.Repeat(userPrompt("s", "u", "u", "again"), 3))
	importtest.Fuzz(f, claude.Format{}, "f", growingFiles()...)
}
