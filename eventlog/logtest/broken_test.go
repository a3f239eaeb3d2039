package logtest

import (
	"flag"
	"os"
	"testing"

	"github.com/convlog/convlog/internal/suite"
)

// TestMain runs more tests in parallel: those that are parallel mostly wait.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8")
	flag.Parse()
	os.Exit(m.Run())
}

func TestMemory(t *testing.T) { suite.RunGroups(t, suite.OpenMemory, groups(), newEnv) }

// A store without optional interfaces passes. Promises that need an interface are
// skipped.
func TestBareStore(t *testing.T) { suite.RunGroups(t, suite.OpenBare, groups(), newEnv) }

func TestNames(t *testing.T) { suite.TestNames(t, groups()) }

func TestDetection(t *testing.T) { suite.TestDetection(t, groups(), newEnv, detections) }

// detections lists the promises that must fail for each broken store, as
// group/promise.
var detections = map[string][]string{
	"drops the last line":            {"append/read back"},
	"reverses an append":             {"append/read back"},
	"writes an append line by line":  {"batch/visible as a whole"},
	"ignores contexts":               {"cancel/waiting for the store lock"},
	"reads later events":             {"read/ends at the head of its start"},
	"ignores bounds":                 {"read/ranges"},
	"leaks goroutines":               {"close/no goroutines left"},
	"does not erase":                 {"redact/content"},
	"removes nothing":                {"remove/missing afterwards"},
	"keeps garbage":                  {"garbage/unreferenced blobs", "garbage/shared blob", "redact/blobs"},
	"removes used blobs":             {"garbage/unreferenced blobs"},
	"keeps the first time of a blob": {"garbage/grace"},
	"works after Close":              {"close/closed store"},
	"ignores the case of ids":        {"hostile/similar ids"},
	"skips damaged lines":            {"damage/is located", "damage/newer version"},
}

func TestHopeless(t *testing.T) {
	failFast(t, 20)
	suite.TestHopeless(t, groups(), newEnv)
}
