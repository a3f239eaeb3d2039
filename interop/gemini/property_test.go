package gemini_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop/gemini"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// anyMessage is a message of any type.
func anyMessage(t *rapid.T, id string) string {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0, 1:
		return user(id, "Count")
	case 2:
		return answer(id, fmt.Sprintf(`"content":"Four","thoughts":[{"subject":"Two and two"}],"tokens":{"input":%d,"output":1}`, rapid.IntRange(4, 6).Draw(t, "input")))
	case 3:
		return answer(id, `"content":"","toolCalls":[{"id":"c`+id+`","name":"read","args":{},"status":"success","result":[{"text":"4"}]}]`)
	case 4:
		return answer(id, `"content":""`)
	}
	return fmt.Sprintf(`{"id":%q,"type":"info","content":"Noted"}`, id)
}

// Law: the import of a growing document gives the same log as the import of the whole
// document, and a second import writes nothing.
func TestAnyGrowingDocumentGivesTheSameLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var messages, versions []string
		for n := range rapid.IntRange(1, 12).Draw(r, "messages") {
			messages = append(messages, anyMessage(r, fmt.Sprintf("m%d", n)))
		}
		for _, cut := range rapid.SliceOfN(rapid.IntRange(0, len(messages)), 0, 3).Draw(r, "cuts") {
			versions = append(versions, document(messages[:cut]...))
		}
		importtest.Grows(r, gemini.Format{}, "f", append(versions, document(messages...))...)
	})
}

// Law: the same holds for any lines.
func TestAnyGrowingLinesGiveTheSameLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lines := []string{`{"sessionId":"s","projectHash":"p"}` + "\n"}
		for n := range rapid.IntRange(1, 16).Draw(r, "lines") {
			id := fmt.Sprintf("m%d", rapid.IntRange(0, n).Draw(r, "id"))
			line := anyMessage(r, id)
			switch rapid.IntRange(0, 7).Draw(r, "change") {
			case 0:
				line = `{"$rewindTo":"` + id + `"}`
			case 1:
				line = `{"$set":{"summary":"Counting ` + id + `"}}`
			case 2:
				line = `{"$set":{"lastUpdated":"` + id + `"}}`
			}
			lines = append(lines, line+"\n")
		}
		var versions []string
		for _, cut := range rapid.SliceOfN(rapid.IntRange(0, len(lines)), 0, 3).Draw(r, "cuts") {
			versions = append(versions, strings.Join(lines[:cut], ""))
		}
		importtest.Grows(r, gemini.Format{}, "f", append(versions, strings.Join(lines, ""))...)
	})
}
