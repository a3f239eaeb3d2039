package gemini_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/gemini"
	"github.com/convlog/convlog/interop/internal/importtest"
)

func TestFileWithoutHeader(t *testing.T) {
	const whole = "5b0c1a7e-0000-4000-8000-0000000000d1"
	header := `{"sessionId":"` + whole + `","projectHash":"p","startTime":"2026-01-01T00:00:00Z","kind":"main"}`
	lines := []string{header, user("a", "One"), answer("b", `"content":"Two","tokens":{"input":5,"output":1}`), user("c", "Three")}
	text := strings.Join(lines, "\n") + "\n"
	dated, agent := "session-2026-01-01T00-00-5b0c1a7e.jsonl", "chats/5b0c1a7e-0000-4000-8000-0000000000d0/"+whole+".jsonl"
	importtest.NoHeader(t, gemini.Format{}, dated, text, whole, "5b0c1a7e")
	importtest.NoHeader(t, gemini.Format{}, agent, text, whole, whole)
	doc := strings.TrimSuffix(header, "}") + `,"messages":[` + "\n  " + strings.Join(lines[1:], ",\n  ") + "\n]}"
	importtest.NoHeader(t, gemini.Format{}, strings.TrimSuffix(dated, "l"), doc, whole, "5b0c1a7e")
	lines = append(lines, `{"$set":{"sessionId":"`+whole+`"}}`)
	importtest.NoHeader(t, gemini.Format{}, dated, strings.Join(lines, "\n")+"\n", whole, whole)
}
