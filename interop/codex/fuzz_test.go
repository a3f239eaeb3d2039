package codex_test

import (
	"strings"
	"testing"
)

const maxFuzzed = 16 << 10 // larger inputs find nothing more, and take their time

// Whatever a file holds, behind a parent or not, every record is counted once, a
// second import writes nothing, and what was written is sound.
func FuzzImport(f *testing.F) {
	for _, name := range append(all, "damaged") {
		f.Add(readFixture(f, name), false)
		f.Add(readFixture(f, name), true)
	}
	lines := strings.SplitAfter(readFixture(f, "rolled-back"), "\n")
	f.Add(lines[0]+strings.Repeat(lines[7], 3), false)
	f.Fuzz(func(t *testing.T, text string, parent bool) {
		if len(text) > maxFuzzed {
			return
		}
		log := newLog(t)
		if parent {
			load(t, log, "parent")
		}
		first, err := loadText(t, log, text)
		if err != nil && !parent { // it may continue, or contradict, the parent's session
			t.Fatal(err)
		}
		if sum := first.Imported + first.Raw + first.Present + first.Held + len(first.Refused); err == nil && sum != first.Records {
			t.Fatalf("%d records in %+v", sum, first)
		}
		second, again := loadText(t, log, text)
		if second.Events != 0 || (err == nil) != (again == nil) {
			t.Fatalf("second import: %+v, %v", second, again)
		}
		verify(t, log)
	})
}
