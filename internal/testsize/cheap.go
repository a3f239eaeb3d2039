package testsize

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// The smaller forms collect garbage less often, and have their temporary folders in memory if
// the system has such a folder. The long form and benchmarks use the disk. GOGC and TMPDIR go
// before.
func init() {
	if Of() == Long || slices.ContainsFunc(os.Args[1:], isBench) {
		return
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if dir := memoryFolder(); dir != "" && os.Getenv("TMPDIR") == "" {
		os.Setenv("TMPDIR", dir)
	}
}

func isBench(arg string) bool { return strings.HasPrefix(arg, "-test.bench=") }
