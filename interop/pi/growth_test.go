package pi_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/pi"
)

var hash = regexp.MustCompile(`"hash":"[0-9a-f]{64}"`)

// rehash sets the hash of the parent's event in a session_forked.
func rehash(t *testing.T, log *eventlog.Log, forked jsontext.Value) jsontext.Value {
	t.Helper()
	var f event.Fork
	if err := json.Unmarshal(forked, &f); err != nil {
		t.Fatal(err)
	}
	e, err := log.Event(t.Context(), f.Parent, f.Seq)
	if err != nil {
		t.Fatal(err)
	}
	return jsontext.Value(hash.ReplaceAllString(string(forked), fmt.Sprintf(`"hash":"%s"`, e.Hash())))
}

func TestGrowingFileGivesTheSameLog(t *testing.T) {
	for _, file := range []string{hivesFile, welshFile, honeyFile, upgraded} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, lines := importtest.ReadFile(t, file), importtest.Lines{Format: pi.Format{}}
			if file == welshFile {
				lines.Before = importtest.ReadFile(t, hivesFile)
			}
			lines.GrowsByBytes(t, text, importtest.Cuts(text))
		})
	}
}

func TestTruncatedLineIsRejected(t *testing.T) {
	log := importtest.NewLog(t)
	text := importtest.ReadFile(t, hivesFile)
	got, err := loadText(t, log, "f", text[:len(text)-40])
	if err != nil || len(got.Rejected) != 1 || got.Rejected[0].Line != 24 || got.Events != 24 {
		t.Errorf("import: %+v, %v", got, err)
	}
}

func TestTwoRecordsOnALine(t *testing.T) {
	log := importtest.NewLog(t)
	if got := importLines(t, log, header+user("a", "", "One")+" "+user("b", "a", "Two")); got.Records != 3 || got.Events != 3 {
		t.Errorf("import: %+v", got)
	}
}

func TestManyEventsAreAppendedInBatches(t *testing.T) {
	lines, parent := []string{header}, ""
	for i := range 1000 {
		id := fmt.Sprintf("u%d", i)
		lines, parent = append(lines, user(id, parent, "Go on")), id
	}
	log := importtest.NewLog(t)
	if got := importLines(t, log, lines...); got.Events != 1001 {
		t.Errorf("import: %+v", got)
	}
	if got := importLines(t, log, lines...); got.Present != 1001 || got.Events != 0 {
		t.Errorf("import again: %+v", got)
	}
}
