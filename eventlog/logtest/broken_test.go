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
	"reorders a batch":                 {"append/read back"},
	"writes an append line by line":    {"batch/visible all or none"},
	"ignores contexts":                 {"cancel/waiting for the store lock"},
	"reads what comes meanwhile":       {"read/consistent with the head at its start"},
	"ignores bounds":                   {"read/ranges"},
	"leaks readers":                    {"close/leaves nothing running"},
	"does not erase":                   {"redact/content is gone"},
	"removes nothing":                  {"remove/is gone"},
	"keeps garbage":                    {"garbage/what nobody needs goes", "garbage/shared by two sessions", "redact/blobs"},
	"sweeps too much":                  {"garbage/what nobody needs goes"},
	"forgets when blobs are put again": {"garbage/grace"},
	"works after Close":                {"close/closed store"},
	"mixes case":                       {"hostile/ids that are almost equal"},
	"passes over damage":               {"damage/is located", "damage/newer version"},
}
