package codex_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// Law: the import of any file is sound, with and without a parent in the log.
func FuzzImport(f *testing.F) {
	for _, name := range append(all, "damaged") {
		f.Add(readFixture(f, name), false)
		f.Add(readFixture(f, name), true)
	}
	lines := strings.SplitAfter(readFixture(f, "rolled-back"), "\n")
	f.Add(lines[0]+strings.Repeat(lines[7], 3), false)
	parent := readFixture(f, "parent")
	f.Fuzz(func(t *testing.T, text string, behind bool) {
		file := importtest.Lines{Format: codex.Format{}}
		if behind {
			file.Before = parent
		}
		file.Sound(t, "f", text)
	})
}
