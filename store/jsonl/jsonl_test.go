package jsonl

import (
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/storetest"
)

// The promises of all stores; syncs are left out, for speed.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		dir := filepath.Join(t.TempDir(), "store")
		open := func(readOnly bool) func() (eventlog.Store, error) {
			return func() (eventlog.Store, error) {
				return New(dir, Options{ReadOnly: readOnly, FS: newFaults(dir)}), nil
			}
		}
		return storetest.Harness{Open: open(false), OpenReadOnly: open(true), Path: dir}
	})
}
