// Package testsize gives random and large tests their size:
//
//   - short: `go test -short`, something of every promise that needs no private server
//   - usual: `go test`, what a change must pass
//   - long: `make long`, the most of each test, once before an issue is closed
//
// Import it in a package whose tests use rapid: it sets the number of random histories.
package testsize

import (
	"flag"
	"os"
	"slices"
	"strconv"

	_ "pgregory.net/rapid" // defines its flags before this package sets one
)

// Size is the size of a test.
type Size int

const (
	Short Size = iota
	Usual
	Long
)

// variable is the environment variable that makes tests long.
const variable = "CONVLOG_TEST_LONG"

// Of returns the size of the tests of this process. It can be called before the flags are
// parsed, thus in the default of a flag.
func Of() Size {
	switch {
	case os.Getenv(variable) != "":
		return Long
	case slices.ContainsFunc(os.Args[1:], isShort):
		return Short
	}
	return Usual
}

func isShort(arg string) bool { return arg == "-test.short=true" || arg == "-test.short" }

// Pick returns the argument of the size of the tests.
func Pick[T any](short, usual, long T) T { return []T{short, usual, long}[Of()] }

// Every reports whether a test of many cases runs case i: the long form runs all of them, the
// usual form one of each n, and the short form one of each 4n. The cases of a smaller form
// are spread over all cases.
func Every(i, n int) bool { return i%Pick(4*n, n, 1) == 0 }

// Fewer returns the number of random cases of a test whose long form has many.
func Fewer(many int) int { return Pick(max(1, many/20), max(2, many/5), many) }

// histories is the number of random histories of a test that has many in the long form. A
// history has many steps, so few of them are enough for a smaller form.
func histories(many int) int { return Pick(max(1, many/50), max(2, many/10), many) }

// shortDivisor divides the number of histories in rapid if testing.Short is true.
const shortDivisor = 5

func init() {
	f := flag.Lookup("rapid.checks")
	if f == nil || f.Value.String() != f.DefValue || os.Getenv("RAPID_CHECKS") != "" {
		return
	}
	if many, err := strconv.Atoi(f.DefValue); err == nil {
		_ = f.Value.Set(strconv.Itoa(histories(many) * Pick(shortDivisor, 1, 1)))
	}
}
