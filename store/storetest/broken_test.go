package storetest

import (
	"testing"

	"github.com/convlog/convlog/internal/suite"
)

func TestMemory(t *testing.T) { suite.RunGroups(t, suite.OpenMemory, groups(), newEnv) }

// A store without optional interfaces passes. Promises that need an interface are
// skipped.
func TestBareStore(t *testing.T) { suite.RunGroups(t, suite.OpenBare, groups(), newEnv) }

func TestNames(t *testing.T) { suite.TestNames(t, groups()) }

func TestDetection(t *testing.T) { suite.TestDetection(t, groups(), newEnv, detections) }

// detections lists the promises that must fail for each broken store, as
// group/promise.
var detections = map[string][]string{
	"drops the last line":              {"store/append and read back", "race/nothing lost with Any"},
	"accepts stale heads":              {"store/compares the head", "store/one writer succeeds", "handles/stale head", "race/one append at a head across handles"},
	"reverses an append":               {"store/append and read back", "race/nothing lost with Any"},
	"reads a missing session as empty": {"store/missing session"},
	"ignores contexts":                 {"store/ended context", "span/cancelled read", "ability/lock excludes"},
	"keeps the caller's bytes":         {"store/copies the events"},
	"normalizes lines":                 {"store/lines in any layout"},
	"reads later events":               {"span/ends at the head of its start"},
	"loses rewinds":                    {"span/snapshots"},
	"ignores bounds":                   {"span/selects"},
	"never changes its version":        {"ability/version changes", "ability/version sees other handles", "catalog/keeps rows"},
	"truncates large blobs":            {"blob/put and open", "size/an append over 4 MiB"},
	"does not erase":                   {"ability/rewrite"},
	"removes nothing":                  {"ability/remove compares the head", "catalog/erases rows"},
	"keeps rows of the catalog":        {"catalog/erases rows", "catalog/erases rows of replaced sessions", "catalog/leaves out stale rows"},
	"lists all for a part":             {"lookup/parts", "listing/prefixes"},
	"relates nothing":                  {"lookup/relations", "lookup/unknown relations"},
	"knows no users":                   {"lookup/users of blobs"},
	"lists in reverse order":           {"listing/rows", "listing/many"},
}

func TestHopeless(t *testing.T) { suite.TestHopeless(t, groups(), newEnv) }
