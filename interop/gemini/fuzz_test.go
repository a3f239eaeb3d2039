package gemini_test

import "testing"

const maxFuzzed = 16 << 10 // larger inputs find nothing more, and take their time

// Whatever a file holds, every record is counted once, a second import writes
// nothing, and what was written is sound.
func FuzzImport(f *testing.F) {
	f.Add(readFile(f, tidesFile))
	f.Add(readFile(f, logbookFile))
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxFuzzed {
			return
		}
		log := newLog(t)
		first, err := loadText(t, log, text)
		if err != nil {
			t.Fatal(err)
		}
		if sum := first.Imported + first.Raw + first.Present + first.Held + len(first.Refused); sum != first.Records {
			t.Fatalf("%d records in %+v", sum, first)
		}
		second, err := loadText(t, log, text)
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
