package pi_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
)

// content is what a log says, without salts, hashes and how appends were grouped.
type content struct {
	Seq            int64
	ID, Session    string
	Type           eventlog.Type
	At             time.Time
	Cost           eventlog.Cost
	Metadata, Data string
}

func contents(t *testing.T, log *eventlog.Log) (all []content) {
	t.Helper()
	for _, id := range sessions(t, log) {
		for _, e := range events(t, log, id) {
			all = append(all, content{e.Seq, e.ID.String(), e.SessionID, e.Type, e.Timestamp, e.Cost, string(e.Metadata), string(e.Data)})
		}
	}
	return all
}

var hash = regexp.MustCompile(`"hash":"[0-9a-f]{64}"`)

// withoutHashes leaves out those of the parents of forks.
func withoutHashes(all []content) []content {
	for i := range all {
		all[i].Data = hash.ReplaceAllString(all[i].Data, `"hash":"…"`)
	}
	return all
}

// rehash gives a session_forked the hash that its parent's event has in log.
func rehash(t *testing.T, log *eventlog.Log, forked jsontext.Value) jsontext.Value {
	t.Helper()
	var f eventlog.Fork
	if err := json.Unmarshal(forked, &f); err != nil {
		t.Fatal(err)
	}
	e, err := log.Event(t.Context(), f.Parent, f.Seq)
	if err != nil {
		t.Fatal(err)
	}
	return jsontext.Value(hash.ReplaceAllString(string(forked), fmt.Sprintf(`"hash":"%s"`, e.Hash())))
}

func TestAFileThatGrowsGivesTheSameLog(t *testing.T) {
	for _, file := range []string{hivesFile, welshFile, honeyFile, upgraded} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := readFile(t, file)
			want := grown(t, file, text)
			for _, cut := range cuts(text) {
				same(t, fmt.Sprintf("the first %d bytes, then all", cut), want, grown(t, file, text[:cut], text))
			}
			var all []string
			for _, cut := range cuts(text) {
				all = append(all, text[:cut])
			}
			same(t, "line by line", want, grown(t, file, append(all, text)...))
		})
	}
}

// grown imports versions of a file, after the one that it is a copy of.
func grown(t *testing.T, file string, versions ...string) []content {
	t.Helper()
	log := newLog(t)
	if file == welshFile {
		load(t, log, hivesFile)
	}
	for _, version := range versions {
		if _, err := loadText(t, log, "f", version); err != nil {
			t.Fatal(err)
		}
	}
	return withoutHashes(contents(t, log))
}

// cuts are the ends of all lines, and a place inside each.
func cuts(text string) (all []int) {
	at := 0
	for line := range strings.Lines(text) {
		all = append(all, at+len(line)/2, at+len(line))
		at += len(line)
	}
	return all
}

func TestATruncatedLineIsRefused(t *testing.T) {
	log := newLog(t)
	text := readFile(t, hivesFile)
	got, err := loadText(t, log, "f", text[:len(text)-40])
	if err != nil || len(got.Refused) != 1 || got.Refused[0].Line != 24 || got.Events != 24 {
		t.Errorf("import: %+v, %v", got, err)
	}
}

func TestTwoRecordsOnALine(t *testing.T) {
	log := newLog(t)
	if got := take(t, log, header+user("a", "", "One")+" "+user("b", "a", "Two")); got.Records != 3 || got.Events != 3 {
		t.Errorf("import: %+v", got)
	}
}

func TestManyEventsAreAppendedInBatches(t *testing.T) {
	lines, parent := []string{header}, ""
	for i := range 1000 {
		id := fmt.Sprintf("u%d", i)
		lines, parent = append(lines, user(id, parent, "Go on")), id
	}
	log := newLog(t)
	if got := take(t, log, lines...); got.Events != 1001 {
		t.Errorf("import: %+v", got)
	}
	if got := take(t, log, lines...); got.Present != 1001 || got.Events != 0 {
		t.Errorf("import again: %+v", got)
	}
}
