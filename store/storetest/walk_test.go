package storetest

import (
	"flag"
	"testing"
)

// The walk notices stores that are broken, also where it never looks for that.
func TestTheWalkNoticesBrokenStores(t *testing.T) {
	for name, value := range map[string]string{"rapid.checks": "200", "rapid.shrinktime": "1ms", "rapid.nofailfile": "true"} {
		f := flag.Lookup(name)
		before := f.Value.String()
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
		defer f.Value.Set(before)
	}
	for _, name := range []string{
		"drops the last line", "accepts stale heads", "ignores bounds", "does not erase", "removes nothing", "lists in any order",
	} {
		for _, b := range brokenStores() {
			if b.name == name && !attempt(t, caseNamed(t, "model/any history"), openBroken(b.wrap)) {
				t.Errorf("%s: not noticed", name)
			}
		}
	}
}

// rapid ends a test in these ways too.
func (r *recorder) Fail()    { r.failed = true }
func (r *recorder) FailNow() { r.Fatalf("") }
