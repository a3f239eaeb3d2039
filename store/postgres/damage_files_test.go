//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/internal/witness"
)

// relationFiles are the files of the tables and indexes of a schema, by name.
func relationFiles(t *testing.T, server, schema string) map[string]string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT c.relname, current_setting('data_directory') || '/' || pg_relation_filepath(c.oid)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname LIKE ANY (ARRAY['events%', 'sessions%', 'blob%']) AND c.relkind IN ('r', 'i')`, schema)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	var name, path string
	if _, err := pgx.ForEachRow(rows, []any{&name, &path}, func() error {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			files[name] = path
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// Bits of the server's files change, and files are cut, emptied or removed. Verify with heads
// names each session that is not as it was written.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Unsynced...)
	dsn := with(t, with(t, server.DSN(), "schema", "damaged"), "assume_synced", "true")
	s := newStore(t, dsn)
	witness.WriteSample(t, s)
	w := witness.New(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := pgtest.Exec(server.DSN(), `CHECKPOINT`); err != nil {
		t.Fatal(err)
	}
	files := relationFiles(t, server.DSN(), "damaged")
	if files["events"] == "" || files["sessions"] == "" {
		t.Fatalf("the files of tables are %v", files)
	}
	whole := map[string][]byte{}
	random := rand.New(rand.NewPCG(1, 2))
	flip := func(b []byte) []byte {
		b[random.IntN(len(b))] ^= 1 << random.IntN(8)
		return b
	}
	type damage struct {
		name string
		edit func(b []byte) []byte // nil removes the file
	}
	damages := []damage{
		{"none", func(b []byte) []byte { return b }},
		{"empty", func([]byte) []byte { return nil }},
		{"the first half", func(b []byte) []byte { return b[:len(b)/2] }},
		{"a page of zeros", func(b []byte) []byte { clear(b[len(b)-8192:]); return b }},
		{"some bits", func(b []byte) []byte {
			for range 20 {
				b = flip(b)
			}
			return b
		}},
		{"removed", nil},
	}
	for n := range testsize.Pick(1, 2, 8) {
		damages = append(damages, damage{fmt.Sprint("bit ", n), flip})
	}
	i, found := 0, 0
	for _, name := range []string{"events", "sessions", "events_pkey", "sessions_pkey", "blobs", "blob_pieces"} {
		path := files[name]
		if path == "" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole[path] = content
		for _, x := range damages {
			if i++; !testsize.Every(i, 8) {
				continue
			}
			t.Run(fmt.Sprintf("%s of %s", x.name, name), func(t *testing.T) {
				if err := server.Kill(); err != nil {
					t.Fatal(err)
				}
				for path, bytes := range whole {
					writeAs(t, path, bytes)
				}
				if x.edit == nil {
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
				} else {
					writeAs(t, path, x.edit(append([]byte(nil), whole[path]...)))
				}
				if err := server.Run(); err != nil {
					t.Fatal(err)
				}
				named, lost := w.CheckHeads(t, newStore(t, dsn))
				found += lost
				if x.name == "none" && len(named)+lost > 0 {
					t.Errorf("of whole files, %d sessions are not as they were written, and these are named: %q", lost, named)
				}
			})
		}
	}
	t.Logf("%d damages of the files of %d relations, %d sessions lost or changed", i, len(whole), found)
}

// writeAs writes a file that the server owns.
func writeAs(t *testing.T, path string, bytes []byte) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		like, err := os.Stat(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer own(t, path, like)
	}
	if err := os.WriteFile(path, bytes, 0o600); err != nil {
		t.Fatal(err)
	}
}

// own gives a new file the owner of a folder.
func own(t *testing.T, path string, like os.FileInfo) {
	t.Helper()
	if as, ok := like.Sys().(*syscall.Stat_t); ok {
		if err := os.Chown(path, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}
