package formats_test

import (
	"math/rand/v2"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// copied copies the transcripts of a format to a folder of the test.
func copied(t *testing.T, format interop.Format) *importtest.Folder {
	t.Helper()
	return importtest.CopyFolders(t, t.TempDir(), folders(t, format)...)
}

// Law: nobody can guess an erased word from the rest of the log. The words are in
// messages, titles, summaries, arguments and prompts of the transcripts.
func TestErasedWordsCannotBeGuessed(t *testing.T) {
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			t.Parallel()
			folder := copied(t, format)
			folder.Write(t, importtest.Unchanged)
			log := importtest.NewLog(t)
			importtest.Files(t, log, format, folder.Path)
			whole, words := importtest.Contents(t, log), importtest.Words(t, log)
			rand.New(rand.NewPCG(1, 2)).Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
			enough, tested := 40, 0
			if testing.Short() {
				enough = 4
			}
			for _, word := range words {
				if tested == enough {
					break
				}
				if folder.Guess(t, format, word, whole) {
					tested++
				}
			}
			if tested < min(enough, 3) {
				t.Errorf("%d words of %d are content", tested, len(words))
			}
		})
	}
}

// Law: whatever is redacted, an import of the same files or of earlier versions writes
// nothing, and an import of later versions writes nothing of the redacted records.
func TestNothingComesBack(t *testing.T) {
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			t.Parallel()
			folder := copied(t, format)
			seeds := uint64(60)
			if testing.Short() {
				seeds = 6
			}
			for seed := range seeds {
				random := rand.New(rand.NewPCG(seed, 0))
				odds := []float64{0.05, 0.2, 0.5, 0.8, 0.95}[seed%5]
				some := func(*event.Event) bool { return random.Float64() < odds }
				folder.StaysAway(t, format, random, some)
				folder.StaysAwayFromGrowth(t, format, random, some)
				if t.Failed() {
					t.Fatal("seed", seed)
				}
			}
		})
	}
}
