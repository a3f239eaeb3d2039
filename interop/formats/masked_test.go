package formats_test

import (
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
			mask := secrets.Mask(scanner, nil)
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
