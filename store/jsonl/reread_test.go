package jsonl

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/eventlog"
)

// A read of a damaged session that is removed, and begun again, never yields the rest of
// the new session, and does not end as if nothing was missing.
func TestDamagedSessionBegunAgainUnderReader(t *testing.T) {
	for name, n := range map[string]int{"shorter": 5, "longer": 40} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			old := content(noteEvents(t, "s", 30))
			old[bytes.Index(old, []byte(`"seq":20,`))+1] = '!'
			write(t, dir, "s", old)
			s := open(t, dir)
			last := int64(0)
			var failed error
			for e, err := range s.Read(t.Context(), "s", eventlog.Span{}) {
				if failed = err; err != nil {
					continue
				}
				if last = e.Seq; last == 1 {
					must(t, os.Remove(filepath.Join(dir, "s.jsonl")))
					write(t, dir, "s", content(noteEvents(t, "s", n)))
				}
			}
			wantErr(t, failed, eventlog.ErrNotFound)
			if last != 19 {
				t.Errorf("the read ended at %d, want 19", last)
			}
		})
	}
}
