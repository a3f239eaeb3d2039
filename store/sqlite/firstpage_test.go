package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Of a database whose first page is lost, in whatever way, a copy has all sessions. The database
// does not change.
func TestCopyWithFirstPage(t *testing.T) {
	p := newFixture(t)
	for name, damage := range map[string]func(page []byte){
		"zeroed":           func(page []byte) { clear(page) },
		"the first half":   func(page []byte) { clear(page[:len(page)/2]) },
		"the second half":  func(page []byte) { clear(page[len(page)/2:]) },
		"the header":       func(page []byte) { clear(page[:100]) },
		"shifted":          func(page []byte) { copy(page[1:], page) },
		"another page":     func(page []byte) { copy(page, p.file[pageSize:2*pageSize]) },
		"two pages zeroed": func([]byte) {},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := bytes.Clone(p.file)
			damage(damaged[:pageSize])
			if name == "two pages zeroed" {
				clear(damaged[:pageSize])
				clear(damaged[16*pageSize : 17*pageSize]) // an index that a reader of events does not need
			}
			p.put(damaged)
			s, to := New(p.path, Options{ReadOnly: true}), filepath.Join(t.TempDir(), "copy.db")
			if copied, err := s.CopyWithFirstPage(t.Context(), to); !copied || err != nil {
				t.Fatalf("not copied: %v", err)
			}
			must(t, s.Close())
			now, err := os.ReadFile(p.path)
			must(t, err)
			if !bytes.Equal(now, damaged) {
				t.Error("the database changed")
			}
			w := New(to, Options{ReadOnly: true})
			if named, lost := p.CheckHeads(t, w); lost > 0 || len(named) > 0 {
				t.Errorf("%d sessions of the copy are not as they were written, and these are named: %q", lost, named)
			}
			must(t, w.Close())
		})
	}
}

// A writer was killed, and the first page of its database is lost. Its write-ahead log has what
// was appended since, and may have the page.
func TestCopyWithFirstPageAndLog(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	head := add(t, s, "a", event.Head{}, 3, "text")
	must(t, s.Close())
	s = New(path)
	add(t, s, "a", head, 2, "later")
	left := filepath.Join(t.TempDir(), "s.db") // as a killed writer leaves it
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		must(t, err)
		if suffix == "" {
			clear(b[:pageSize])
		}
		must(t, os.WriteFile(left+suffix, b, 0o600))
	}
	must(t, s.Close())
	to := filepath.Join(t.TempDir(), "copy.db")
	if copied, err := New(left, Options{ReadOnly: true}).CopyWithFirstPage(t.Context(), to); !copied || err != nil {
		t.Fatalf("not copied: %v", err)
	}
	events, err := collect(open(t, to, Options{ReadOnly: true}).Read(t.Context(), "a", eventlog.Span{}))
	must(t, err)
	if len(events) != 5 {
		t.Errorf("%d events", len(events))
	}
}

// A whole database, one of another program, a short file and a text are not copied.
func TestCopyWithFirstPageRefuses(t *testing.T) {
	p := newFixture(t)
	foreign := bytes.Clone(p.file)
	foreign[68] ^= 1 // the application id
	for name, file := range map[string][]byte{
		"a whole database":              p.file,
		"a database of another program": foreign,
		"a short file":                  make([]byte, 3*pageSize),
		"zeros":                         make([]byte, 40*pageSize),
		"a text":                        bytes.Repeat([]byte("text\n"), 40*pageSize/5),
		"an empty file":                 nil,
	} {
		t.Run(name, func(t *testing.T) {
			p.put(file)
			s, to := New(p.path), filepath.Join(t.TempDir(), "copy.db")
			if copied, err := s.CopyWithFirstPage(t.Context(), to); copied || err != nil {
				t.Errorf("copied %v, %v", copied, err)
			}
			if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a copy: %v", err)
			}
			must(t, s.Close())
		})
	}
}
