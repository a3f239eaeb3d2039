package importtest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/upkeep/erase"
)

// Redact redacts the events of a log that pick accepts, and returns their number. It
// skips events that redaction refuses.
func Redact(t TB, log *eventlog.Log, pick func(*event.Event) bool) (redacted int) {
	t.Helper()
	for _, id := range Sessions(t, log) {
		var seqs []int64
		for _, e := range Events(t, log, id) {
			if e.SessionID == id && e.Type.Erasable() && e.Type != event.Redacted && !e.Redacted() && pick(&e) {
				seqs = append(seqs, e.Seq)
			}
		}
		if len(seqs) == 0 {
			continue
		}
		if _, err := erase.Redact(t.Context(), log, id, seqs, erase.RedactOptions{Reason: "asked for"}); err != nil {
			t.Fatal(err)
		}
		redacted += len(seqs)
	}
	return redacted
}

// Remains is all that an attacker sees of a log after a redaction, without salts, hashes
// and the redacted events themselves, which have a random id.
func Remains(t TB, log *eventlog.Log) (all []Content) {
	t.Helper()
	for _, c := range Contents(t, log) {
		if c.Type != event.Redacted {
			all = append(all, c)
		}
	}
	blobs, ok := eventlog.As[eventlog.Blobs](log.Store())
	if !ok {
		t.Fatal("the store has no blobs")
	}
	for info, err := range blobs.ListBlobs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Content{Type: "blob", Data: string(info.Digest)})
	}
	return all
}

// Says reports whether any of the contents has a text.
func Says(all []Content, text string) bool {
	return slices.ContainsFunc(all, func(c Content) bool {
		return strings.Contains(c.Data+c.Metadata+c.Kept+c.Session, text)
	})
}

// Folder is a folder with transcripts. Its files have a fixed time.
type Folder struct {
	Path  string
	files map[string][]byte // by path in the folder
}

// CopyFolders copies folders to dir.
func CopyFolders(t TB, dir string, from ...string) *Folder {
	t.Helper()
	f := &Folder{Path: dir, files: map[string][]byte{}}
	for _, root := range from {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(filepath.Dir(root), path)
			if err != nil {
				return err
			}
			f.files[name], err = os.ReadFile(path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// Write writes the files, each changed by change.
func (f *Folder) Write(t TB, change func(name string, content []byte) []byte) {
	t.Helper()
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		content, path := f.files[name], filepath.Join(f.Path, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(name, content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// Contents are the contents of the files, by path in the folder.
func (f *Folder) Contents() map[string][]byte { return f.files }

// Unchanged returns the content of a file.
func Unchanged(_ string, content []byte) []byte { return content }

// Cut returns a change that cuts files of lines after some of their lines.
func Cut(random *rand.Rand) func(name string, content []byte) []byte {
	return func(name string, content []byte) []byte {
		lines := bytes.SplitAfter(content, []byte{'\n'})
		if filepath.Ext(name) != ".jsonl" || len(lines) < 2 {
			return content
		}
		return bytes.Join(lines[:1+random.IntN(len(lines))], nil)
	}
}

// load imports the folder.
func (f *Folder) load(t TB, log *eventlog.Log, format interop.Format) interop.Result {
	t.Helper()
	table, err := interop.Import(t.Context(), log, []interop.Format{format}, []string{f.Path})
	if err != nil {
		t.Fatal(err)
	}
	return table.Total()
}

// words matches a word that can be content. A run of letters in base64 is none.
var words = regexp.MustCompile(`\b[A-Za-z]{5,12}\b`)

// Words are words of the texts of a log, in an order that depends on the log only.
func Words(t TB, log *eventlog.Log) (all []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range Contents(t, log) {
		for _, w := range words.FindAllString(c.Data, -1) {
			if !seen[w] {
				seen[w] = true
				all = append(all, w)
			}
		}
	}
	return all
}

// Guess is the law that nobody can guess an erased word. Two folders differ in the word
// only. Once the events that hold the word are redacted, the logs of the two are equal.
// ok is false if the word is not only content, so that its replacement changes the
// structure of the log or stays in it.
func (f *Folder) Guess(t TB, format interop.Format, word string, whole []Content) (ok bool) {
	t.Helper()
	var logs [2][]Content
	for i, alphabet := range []string{"qjxvk", "zwpfy"} {
		other := []byte(strings.Repeat(alphabet, 3)[:len(word)])
		f.Write(t, func(_ string, content []byte) []byte { return bytes.ReplaceAll(content, []byte(word), other) })
		log := NewLog(t)
		if _, err := interop.Import(t.Context(), log, []interop.Format{format}, []string{f.Path}); err != nil {
			return false
		}
		if !sameStructure(whole, Contents(t, log)) {
			return false
		}
		Redact(t, log, func(e *event.Event) bool {
			return bytes.Contains(e.Data, other) || bytes.Contains(e.Metadata, other)
		})
		logs[i] = Remains(t, log)
		if Says(logs[i], string(other)) {
			return false
		}
		f.staysAway(t, log, format, fmt.Sprintf("%s instead of %s", other, word))
	}
	Same(t, "the log without "+word, logs[0], logs[1])
	return true
}

// sameStructure reports whether two logs have events of the same types.
func sameStructure(a, b []Content) bool {
	return slices.EqualFunc(a, b, func(a, b Content) bool { return a.Type == b.Type && a.Session == b.Session && a.At.Equal(b.At) })
}

// staysAway imports the folder again, and checks that nothing is written.
func (f *Folder) staysAway(t TB, log *eventlog.Log, format interop.Format, what string) {
	t.Helper()
	before := Remains(t, log)
	table, err := interop.Import(t.Context(), log, []interop.Format{format}, []string{f.Path})
	if total := table.Total(); err != nil || total.Events != 0 {
		t.Errorf("%s: import again: %+v, %v", what, total, err)
	}
	Same(t, what+", imported again", before, Remains(t, log))
}

// StaysAway is the law that nothing comes back. Some events are redacted; pick chooses
// them. An import of the same files writes nothing, and neither does an import of earlier
// versions of the files.
func (f *Folder) StaysAway(t TB, format interop.Format, random *rand.Rand, pick func(*event.Event) bool) {
	t.Helper()
	f.Write(t, Unchanged)
	log := NewLog(t)
	f.load(t, log, format)
	Redact(t, log, pick)
	f.staysAway(t, log, format, "some events are redacted")
	f.Write(t, Cut(random))
	f.staysAway(t, log, format, "some events are redacted, earlier versions of the files")
	Verify(t, log)
}

// StaysAwayFromGrowth is the law that nothing comes back when the files grow after the
// redaction: no record is new that is not new without the redaction.
func (f *Folder) StaysAwayFromGrowth(t TB, format interop.Format, random *rand.Rand, pick func(*event.Event) bool) {
	t.Helper()
	erased, twin := NewLog(t), NewLog(t)
	f.Write(t, Cut(random))
	f.load(t, erased, format)
	f.load(t, twin, format)
	Redact(t, erased, pick)
	f.Write(t, Unchanged)
	got, want := f.load(t, erased, format), f.load(t, twin, format)
	if got.Imported+got.Raw > want.Imported+want.Raw {
		t.Errorf("%+v are new, not %+v", got, want)
	}
	f.staysAway(t, erased, format, "the files have grown")
	Verify(t, erased)
}
