package formats_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// folders returns the folders with the transcripts of a format.
func folders(t *testing.T, format interop.Format) []string {
	t.Helper()
	root := filepath.Join("..", "..", "testdata", "transcripts")
	if format.Name() == "claude" {
		return []string{filepath.Join(root, "claude"), filepath.Join(root, "samples")}
	}
	return []string{filepath.Join(root, format.Name())}
}

// Law: every store gets the same log from the transcripts of every format, and a
// second import adds nothing. The sessions in the result are the sessions in the log.
func TestEveryFormatOverEveryStore(t *testing.T) {
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			memory, paths := importtest.NewLog(t), folders(t, format)
			first := importtest.Files(t, memory, format, paths...)
			if first.Imported == 0 || len(first.Sessions) == 0 {
				t.Fatalf("import: %+v", first)
			}
			slices.Sort(first.Sessions)
			importtest.Same(t, "sessions", importtest.Sessions(t, memory), first.Sessions)
			want := importtest.Contents(t, memory)
			for name, store := range map[string]eventlog.Store{
				"jsonl": jsonl.New(t.TempDir()), "sqlite": sqlite.New(filepath.Join(t.TempDir(), "log.db")),
			} {
				log := eventlog.Open(store)
				importtest.Files(t, log, format, paths...)
				importtest.Same(t, name, want, importtest.Contents(t, log))
				if again := importtest.Files(t, log, format, paths...); again.Events != 0 || again.Present+again.Skipped+len(again.Rejected) != again.Records {
					t.Errorf("%s: import again: %+v", name, again)
				}
				importtest.Verify(t, log)
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Law: files with the same sessions are imported in the order of their paths,
// whichever file is read first.
func TestFilesOfOneSessionAreImportedByPath(t *testing.T) {
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			dir := t.TempDir()
			for _, copied := range []string{"1", "2", "3"} {
				for i, folder := range folders(t, format) {
					if err := os.CopyFS(filepath.Join(dir, copied, strconv.Itoa(i)), os.DirFS(folder)); err != nil {
						t.Fatal(err)
					}
				}
			}
			var want []importtest.Content
			for range testsize.Pick(2, 2, 10) {
				log := importtest.NewLog(t)
				importtest.Files(t, log, format, dir)
				got := importtest.Contents(t, log)
				if want != nil {
					importtest.Same(t, "again", want, got)
				}
				want = got
			}
		})
	}
}
