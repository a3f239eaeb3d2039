package formats_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/secrets"
	"github.com/convlog/convlog/store/memory"
)

// wordScanner finds common words, so that most texts of the transcripts have a secret.
func wordScanner(t *testing.T) *secrets.Scanner {
	t.Helper()
	s, err := secrets.New(secrets.Rule{
		Name: "word", Finds: "words", Pattern: `(?i)\b(?:the|and|is|it|to|of|a|in|what|where|for|that)\b`,
		Keywords: []string{"the", "and", "is", "it", "to", "of", "a", "in", "what", "where", "for", "that"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A second import of files with masked secrets adds nothing: with the same rules, and
// without rules. Nor does an import with masks after an import without.
func TestMaskedImportsAreRecognized(t *testing.T) {
	scanner := wordScanner(t)
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			paths := folders(t, format)
			again := func(what string, store eventlog.Store, first, second secrets.Policy) {
				importtest.Files(t, eventlog.Open(store, eventlog.Options{Hook: first.Event, BodyHook: first.Body}), format, paths...)
				log := eventlog.Open(store, eventlog.Options{Hook: second.Event, BodyHook: second.Body})
				table, err := interop.Import(t.Context(), log, []interop.Format{format}, paths)
				if total := table.Total(); err != nil || total.Events != 0 {
					t.Errorf("%s: import again: %+v, %v", what, total, err)
				}
				importtest.Verify(t, log)
			}
			masks := 0
			mask := secrets.Policy{Scanner: scanner, Mask: true}
			store := memory.New()
			again("masks twice", store, mask, mask)
			for _, id := range importtest.Sessions(t, eventlog.Open(store)) {
				for _, e := range importtest.Events(t, eventlog.Open(store), id) {
					if e.Masked() {
						masks++
					}
				}
			}
			if masks == 0 {
				t.Error("nothing was masked")
			}
			again("masks, then none", memory.New(), mask, secrets.Policy{})
			again("none, then masks", memory.New(), secrets.Policy{}, mask)
		})
	}
}

// A file that grows gives the same events with masks, as if it had been imported at once.
// Their data may differ: a compaction may have a masked message in the place of a
// reference to it.
func TestMaskedFilesGrow(t *testing.T) {
	mask := secrets.Policy{Scanner: wordScanner(t), Mask: true}
	open := func() *eventlog.Log {
		return eventlog.Open(memory.New(), eventlog.Options{Hook: mask.Event, BodyHook: mask.Body})
	}
	eachTranscript(t, func(t *testing.T, format interop.Format, name, text string) {
		lines := strings.SplitAfter(text, "\n")
		if filepath.Ext(name) != ".jsonl" || len(lines) < 4 || strings.Contains(name, "broken") || strings.Contains(name, "damaged") {
			return
		}
		whole, grown := open(), open()
		importtest.Text(t, whole, format, "f.jsonl", text)
		importtest.Text(t, grown, format, "f.jsonl", strings.Join(lines[:len(lines)/2], ""))
		importtest.Text(t, grown, format, "f.jsonl", text)
		importtest.Same(t, "log", identities(t, whole), identities(t, grown))
	})
}

// identities are the seqs, ids and types of all events.
func identities(t *testing.T, log *eventlog.Log) (all []string) {
	t.Helper()
	for _, id := range importtest.Sessions(t, log) {
		for _, e := range importtest.Events(t, log, id) {
			all = append(all, fmt.Sprint(id, " ", e.Seq, " ", e.ID, " ", e.Type))
		}
	}
	return all
}
