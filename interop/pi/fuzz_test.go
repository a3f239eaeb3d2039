package pi_test

import (
	"errors"
	"testing"

	"github.com/convlog/convlog/interop"
)

const maxFuzzed = 16 << 10 // larger inputs find nothing more, and take their time

// Whatever a file holds, every record is counted once, a second import writes
// nothing, and what was written is sound.
func FuzzImport(f *testing.F) {
	for _, file := range []string{hivesFile, welshFile, honeyFile, upgraded} {
		f.Add(readFile(f, file))
	}
	parent := readFile(f, hivesFile)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxFuzzed {
			return
		}
		log := newLog(t)
		if _, err := loadText(t, log, "f", parent); err != nil {
			t.Fatal(err)
		}
		first, err := loadText(t, log, "f", text)
		if errors.Is(err, interop.ErrHistory) {
			return // the file begins a session of the log otherwise
		}
		if err != nil {
			t.Fatal(err)
		}
		if sum := first.Imported + first.Raw + first.Present + first.Held + len(first.Refused); sum != first.Records {
			t.Fatalf("%d records in %+v", sum, first)
		}
		second, err := loadText(t, log, "f", text)
		if err != nil || second.Events != 0 {
			t.Fatalf("second import: %+v, %v", second, err)
		}
		for _, id := range sessions(t, log) {
			if report, err := log.Verify(t.Context(), id); err != nil || len(report.Defects) > 0 {
				t.Fatalf("verify %q: %v, %v", id, report.Defects, err)
			}
		}
	})
}
