package formats_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/upkeep/erase"
)

// restorer makes the files of sessions again.
type restorer interface {
	interop.Format
	Restore(ctx context.Context, log *eventlog.Log, session string) (written.Restored, error)
}

func restorers(t *testing.T) (all []restorer) {
	for _, f := range formats.All() {
		if r, ok := f.(restorer); ok {
			all = append(all, r)
		}
	}
	if len(all) < 3 {
		t.Fatalf("%d formats restore files", len(all))
	}
	return all
}

// restored restores all sessions into a new folder, and returns the folder.
func restored(t *testing.T, log *eventlog.Log, format restorer, check func(session string, r *written.Restored)) string {
	t.Helper()
	dir, files := t.TempDir(), 0
	for _, id := range importtest.Sessions(t, log) {
		r, err := format.Restore(t.Context(), log, id)
		if err != nil {
			t.Fatal(err)
		}
		if r.Path == "" {
			continue
		}
		check(id, &r)
		path := filepath.Join(dir, filepath.FromSlash(r.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, r.Body, 0o600); err != nil {
			t.Fatal(err)
		}
		files++
	}
	if files == 0 {
		t.Fatal("no session has a file")
	}
	return dir
}

func importsNothing(t *testing.T, log *eventlog.Log, format restorer, dir string) {
	t.Helper()
	table, err := interop.Import(t.Context(), log, []interop.Format{format}, []string{dir})
	if total := table.Total(); err != nil || total.Events != 0 || total.Records == 0 {
		t.Errorf("import again: %+v, %v", total, err)
	}
	importtest.Verify(t, log)
}

// A restored file has the records of the imported file, byte for byte, and importing it adds
// nothing.
func TestRestoredFilesAreTheImportedFiles(t *testing.T) {
	for _, format := range restorers(t) {
		t.Run(format.Name(), func(t *testing.T) {
			log := importtest.NewLog(t)
			importtest.Files(t, log, format, folders(t, format)...)
			dir := restored(t, log, format, func(id string, r *written.Restored) {
				if differ := r.Records - r.Same - r.Shared; differ != 0 {
					t.Errorf("session %s: %d of %d records have other bytes", id, differ, r.Records)
				}
			})
			importsNothing(t, log, format, dir)
		})
	}
}

// Restore counts the records with other bytes than the imported file: an import of a restored
// file without such records adds nothing.
func TestRestoreCountsOtherBytes(t *testing.T) {
	differ, added := 0, 0
	for _, format := range restorers(t) {
		t.Run(format.Name(), func(t *testing.T) {
			log, dir := importtest.NewLog(t), t.TempDir()
			for i, folder := range folders(t, format) {
				reversed(t, folder, filepath.Join(dir, strconv.Itoa(i)))
			}
			importtest.Files(t, log, format, dir)
			others := map[string]int{} // by name
			again := restored(t, log, format, func(_ string, r *written.Restored) {
				n := r.Records - r.Same - r.Shared - r.Erased
				others[path.Base(r.Path)] = n
				differ += n
			})
			table, _ := interop.Import(t.Context(), log, []interop.Format{format}, []string{again}) // the rows have the errors
			for _, row := range table.Rows {
				if row.Err != nil || row.Events > 0 {
					added++
					if others[filepath.Base(row.Path)] == 0 {
						t.Errorf("%s: an import adds %d events, %v", row.Path, row.Events, row.Err)
					}
				}
			}
		})
	}
	if differ == 0 || added == 0 {
		t.Errorf("%d records with other bytes, %d files with new events", differ, added)
	}
}

// reversed copies a folder of JSON Lines with the members of each line in the reverse order.
func reversed(t *testing.T, from, to string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(from), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		var body []byte
		for line := range bytes.Lines(content) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if members, err := rawjson.Members(line); err == nil {
				slices.Reverse(members)
				line = rawjson.Object(members)
			}
			body = append(append(body, line...), '\n')
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), body, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An erased message comes back without its text, and stays erased when the file is imported.
func TestErasedMessagesAreRestoredAsErased(t *testing.T) {
	for _, format := range restorers(t) {
		t.Run(format.Name(), func(t *testing.T) {
			log := importtest.NewLog(t)
			importtest.Files(t, log, format, folders(t, format)...)
			erased, texts := 0, [][]byte{}
			for _, id := range importtest.Sessions(t, log) {
				for _, e := range importtest.Events(t, log, id) {
					m, ok, err := event.Decode[event.Message](&e)
					if e.SessionID != id || !ok || err != nil || e.Seq%2 == 0 {
						continue
					}
					if _, err := erase.Redact(t.Context(), log, id, []int64{e.Seq}, erase.RedactOptions{Reason: "asked for"}); err != nil {
						t.Fatal(err)
					}
					if text := m.Text(); len(text) > 20 && m.Role == event.Assistant {
						texts = append(texts, []byte(text)[:20])
					}
				}
			}
			for _, id := range importtest.Sessions(t, log) { // a text can be in another event too
				for _, e := range importtest.Events(t, log, id) {
					texts = slices.DeleteFunc(texts, func(text []byte) bool { return bytes.Contains(e.Data, text) })
				}
			}
			dir := restored(t, log, format, func(id string, r *written.Restored) {
				erased += bytes.Count(r.Body, []byte("[erased]"))
				for _, text := range texts {
					if bytes.Contains(r.Body, text) {
						t.Errorf("session %s: the restored file has %q", id, text)
					}
				}
			})
			if erased == 0 || len(texts) == 0 {
				t.Errorf("%d placeholders for %d texts", erased, len(texts))
			}
			importsNothing(t, log, format, dir)
		})
	}
}
