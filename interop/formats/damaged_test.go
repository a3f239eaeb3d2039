package formats_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// eachTranscript calls do with each transcript of each format.
func eachTranscript(t *testing.T, do func(t *testing.T, format interop.Format, name, text string)) {
	t.Helper()
	for _, format := range formats.All() {
		for _, folder := range folders(t, format) {
			err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || d.Name() == "base_state.json" {
					return err // the events are in other files
				}
				content, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				t.Run(format.Name()+"/"+d.Name(), func(t *testing.T) { do(t, format, d.Name(), string(content)) })
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Law: lines can be joined, for example by two writers at once. They are read like
// separate lines.
func TestJoinedLines(t *testing.T) {
	eachTranscript(t, func(t *testing.T, format interop.Format, name, text string) {
		if filepath.Ext(name) != ".jsonl" || strings.Contains(name, "broken") || strings.Contains(name, "damaged") {
			return
		}
		apart, joined := importtest.NewLog(t), importtest.NewLog(t)
		first := importtest.Text(t, apart, format, "f.jsonl", text)
		second := importtest.Text(t, joined, format, "f.jsonl", strings.ReplaceAll(strings.TrimSpace(text), "\n", " "))
		if first.Records != second.Records || first.Imported != second.Imported || len(first.Rejected) != len(second.Rejected) {
			t.Errorf("apart: %+v, joined: %+v", first, second)
		}
		importtest.Same(t, "log", importtest.Dump(t, apart), importtest.Dump(t, joined))
	})
}

// Law: in a truncated transcript, the unreadable record is rejected and located. The
// complete transcript is imported later.
func TestTruncatedTranscripts(t *testing.T) {
	eachTranscript(t, func(t *testing.T, format interop.Format, name, text string) {
		whole := importtest.NewLog(t)
		want := importtest.Text(t, whole, format, name, text)
		for _, share := range []int{3, 5, 8} {
			log := importtest.NewLog(t)
			cut := text[:len(text)*share/9]
			got := importtest.Text(t, log, format, name, cut)
			last := strings.TrimSpace(cut[strings.LastIndexByte(cut, '\n')+1:])
			if last != "" && len(got.Rejected) == 0 && got.Skipped == 0 {
				t.Errorf("%d ninths: %+v", share, got)
			}
			importtest.Again(t, log, format, name, cut)
			again := importtest.Text(t, log, format, name, text)
			if len(again.Rejected) != len(want.Rejected) {
				t.Errorf("%d ninths, then all: %+v", share, again)
			}
			importtest.Verify(t, log)
			for _, id := range want.Sessions {
				importtest.Same(t, id, messages(t, whole, id), messages(t, log, id))
			}
		}
	})
}

// messages returns an outline of the messages on the active path.
func messages(t *testing.T, log *eventlog.Log, id string) (lines []string) {
	t.Helper()
	for _, m := range importtest.Messages(t, log, id) {
		lines = append(lines, importtest.MessageOutline(&m))
	}
	return lines
}
