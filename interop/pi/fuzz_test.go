package pi_test

import (
	"testing"

	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/pi"
)

// Whatever a file holds, its import is sound, also where it is a copy of a session
// that the log has.
func FuzzImport(f *testing.F) {
	for _, file := range []string{hivesFile, welshFile, honeyFile, upgraded} {
		f.Add(importtest.ReadFile(f, file))
	}
	behind := importtest.Lines{Format: pi.Format{}, Before: importtest.ReadFile(f, hivesFile)}
	f.Fuzz(func(t *testing.T, text string) { behind.Sound(t, "f", text) })
}
