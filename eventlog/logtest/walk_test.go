package logtest

import (
	"flag"
	"strconv"
	"testing"

	"github.com/convlog/convlog/internal/suite"
)

// The random walk detects broken stores, also without a promise for the broken part.
func TestWalkDetectsBrokenStores(t *testing.T) {
	failFast(t, 200)
	for _, name := range []string{
		"drops the last line", "accepts stale heads", "ignores bounds", "does not erase", "removes nothing", "lists in reverse order",
	} {
		for _, b := range suite.BrokenStores() {
			if b.Name == name && !suite.Fails(t, suite.FindCase(t, groups(), "model/any history"), b.Open, newEnv) {
				t.Errorf("%s: the walk does not fail", name)
			}
		}
	}
}

// failFast sets flags of rapid for a test whose histories fail: a failure is not made
// shorter, and not written to a file. checks is the number of histories; rapid divides it by
// five in the short form.
func failFast(t *testing.T, checks int) {
	t.Helper()
	if testing.Short() {
		checks *= 5
	}
	set := func(name, value string) {
		f := flag.Lookup(name)
		before := f.Value.String()
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(before) })
	}
	set("rapid.shrinktime", "1ms")
	set("rapid.nofailfile", "true")
	set("rapid.checks", strconv.Itoa(checks))
}
