package codex_test

import (
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/internal/importtest"
)

func TestFileWithoutHeader(t *testing.T) {
	r := rollout{at: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	r.header(parentSession, "")
	r.exchange(1)
	r.exchange(2)
	text := strings.Join(r.lines, "\n") + "\n"
	importtest.NoHeader(t, codex.Format{}, "rollout-2026-03-01T10-00-00-"+parentSession+".jsonl", text, parentSession, parentSession)
}

// A fork without its header has the copied header of its parent.
func TestForkWithoutHeader(t *testing.T) {
	for name, order := range map[string][]string{
		"together": {""}, "after its parent": {parentSession, forkSession}, "before its parent": {forkSession, parentSession},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCopies(t, false)
			_, rest, _ := strings.Cut(importtest.ReadFile(t, c.path(forkSession)), "\n")
			c.write(forkSession, strings.Repeat("\x00", 100)+"\n"+rest)
			for _, session := range order {
				path := c.dir
				if session != "" {
					path = c.path(session)
				}
				importtest.Files(t, c.log, codex.Format{}, path)
			}
			c.counted()
		})
	}
}
