package claude_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// A line without a session is held until the session goes on, so a second import reads it
// after other lines than the first. Erased, it does not come back.
func TestAnErasedLineWithoutASessionStaysAway(t *testing.T) {
	const text = `{"type":"mode","sessionId":"s","mode":"plan"}
{"type":"file-history-snapshot","messageId":"m1","snapshot":{"secret":1}}
{"type":"attachment","uuid":"u0","sessionId":"s","timestamp":"2026-03-01T10:00:00Z","attachment":{"a":1}}
{"type":"user","uuid":"u1","parentUuid":"u0","sessionId":"s","timestamp":"2026-03-01T10:00:01Z","message":{"role":"user","content":"Hello"}}
`
	log := importtest.NewLog(t)
	importtest.Text(t, log, claude.Format{}, "f", text)
	if n := importtest.Redact(t, log, func(e *event.Event) bool { return e.Type == "claude:file-history-snapshot" }); n != 1 {
		t.Fatalf("%d events redacted", n)
	}
	importtest.Again(t, log, claude.Format{}, "f", text)
}
