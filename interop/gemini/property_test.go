package gemini_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/storetest"
)

// anyMessage is a message of any kind.
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

// Law: whatever the messages are, importing a document while it grows by messages
// gives the same log as importing it whole, and importing it again writes nothing.
func TestAnyDocumentThatGrowsGivesTheSameLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var messages, versions []string
		for n := range rapid.IntRange(1, 12).Draw(r, "messages") {
			messages = append(messages, anyMessage(r, fmt.Sprintf("m%d", n)))
		}
		for _, cut := range rapid.SliceOfN(rapid.IntRange(0, len(messages)), 0, 3).Draw(r, "cuts") {
			versions = append(versions, document(messages[:cut]...))
		}
		law(t, r, document(messages...), versions)
	})
}

// Law: the same holds for lines, whatever they are.
func TestAnyLinesThatGrowGiveTheSameLog(t *testing.T) {
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
		law(t, r, strings.Join(lines, ""), versions)
	})
}

// law compares a file imported whole with the same after earlier versions.
func law(t *testing.T, r *rapid.T, whole string, versions []string) {
	if diff := cmp.Diff(imported(t, r, whole), imported(t, r, append(versions, whole)...)); diff != "" {
		r.Fatalf("whole (-) and grown (+):\n%s", diff)
	}
}

// imported is what a log says after the import of versions of a file; another
// import of the last must write nothing.
func imported(t *testing.T, r *rapid.T, versions ...string) (all []string) {
	log := eventlog.Open(storetest.NewMemory())
	defer log.Close()
	put := func(text string) int {
		got, err := loadText(t, log, text)
		if err != nil {
			r.Fatalf("import: %+v, %v", got, err)
		}
		if sum := got.Imported + got.Raw + got.Present + got.Held + len(got.Refused); sum != got.Records {
			r.Fatalf("%d records in %+v", sum, got)
		}
		return got.Events
	}
	for _, version := range versions {
		put(version)
	}
	for _, id := range sessions(t, log) {
		for _, e := range events(t, log, id) {
			all = append(all, fmt.Sprint(e.Seq, e.ID, e.Type, e.Timestamp, string(e.Data)))
		}
	}
	if n := put(versions[len(versions)-1]); n > 0 {
		r.Fatalf("import again wrote %d events", n)
	}
	return all
}
