package pi_test

import (
	"testing"

	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/pi"
)

// Law: the import of any file is sound, including a copy of a session in the log.
func FuzzImport(f *testing.F) {
	for _, file := range []string{hivesFile, welshFile, honeyFile, upgraded} {
		f.Add(importtest.ReadFile(f, file))
	}
	behind := importtest.Lines{Format: pi.Format{}, Before: importtest.ReadFile(f, hivesFile)}
	f.Fuzz(func(t *testing.T, text string) { behind.Sound(t, "f", text) })
}
