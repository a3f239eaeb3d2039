package storetest

import (
	"flag"
	"testing"
)

// The walk notices stores that are broken, also where it never looks for that.
func TestTheWalkNoticesBrokenStores(t *testing.T) {
	for name, value := range map[string]string{"rapid.shrinktime": "1ms", "rapid.nofailfile": "true"} {
		f := flag.Lookup(name)
		before := f.Value.String()
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
		defer f.Value.Set(before)
	}
	for name, promise := range map[string]string{
		"drops the last line": "model/any history",
		"accepts stale heads": "model/any history across handles",
		"ignores bounds":      "model/any history",
		"does not erase":      "model/any history",
		"removes nothing":     "model/any history",
		"lists in any order":  "model/any history",
	} {
		for _, b := range brokenStores() {
			if b.name == name && !attempt(t, caseNamed(t, promise), openBroken(b.wrap)) {
				t.Errorf("%s: not noticed by %q", name, promise)
			}
		}
	}
}

// rapid ends a test in these ways too.
func (r *recorder) Fail()    { r.failed = true }
func (r *recorder) FailNow() { r.Fatalf("") }
