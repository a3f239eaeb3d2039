package logtest

import (
	"testing"

	"github.com/convlog/convlog/internal/suite"
)

func TestMemory(t *testing.T) { Run(t, suite.OpenMemory) }

// A store without any ability passes: promises that need one are left out.
func TestBareStore(t *testing.T) { Run(t, suite.OpenBare) }

func TestNames(t *testing.T) { suite.TestNames(t, groups()) }

func TestDetection(t *testing.T) { suite.TestDetection(t, groups(), newEnv, detections) }

// noticed names the promises that must notice each way of breaking a store.
var detections = map[string][]string{
	"drops the last line":              {"append/read back"},
	"reverses an append":                 {"append/read back"},
	"writes an append line by line":    {"batch/visible all or none"},
	"ignores contexts":                 {"cancel/waiting for the store lock"},
	"reads later events":       {"read/consistent with the head at its start"},
	"ignores bounds":                   {"read/ranges"},
	"leaks goroutines":                    {"close/leaves nothing running"},
	"does not erase":                   {"redact/content is gone"},
	"removes nothing":                  {"remove/is gone"},
	"keeps garbage":                    {"garbage/what nobody needs goes", "garbage/shared by two sessions", "redact/blobs"},
	"removes used blobs":                  {"garbage/what nobody needs goes"},
	"keeps the first time of a blob": {"garbage/grace"},
	"works after Close":                {"close/closed store"},
	"ignores the case of ids":                       {"hostile/ids that are almost equal"},
	"skips damaged lines":               {"damage/is located", "damage/newer version"},
}
