package logtest

import (
	"flag"
	"testing"

	"github.com/convlog/convlog/internal/suite"
)

// The random walk detects broken stores, also without a promise for the broken part.
func TestWalkDetectsBrokenStores(t *testing.T) {
	for name, value := range map[string]string{"rapid.checks": "200", "rapid.shrinktime": "1ms", "rapid.nofailfile": "true"} {
		f := flag.Lookup(name)
		before := f.Value.String()
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
		defer f.Value.Set(before)
	}
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
