package sqlite

import (
	"errors"
	"os"
	"path/filepath"

	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/witness"
)

// fixture is an undamaged database for tests of damage.
type fixture struct {
	testing.TB
	*witness.Witness
	path string
	file []byte // the undamaged file, closed and checkpointed
	key  int64  // key of the main session
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	p := &fixture{TB: t, path: tempPath(t)}
	s := New(p.path, Options{NoSync: true})
	witness.WriteSample(t, s)
	p.Witness = witness.New(t, s)
	must(t, s.Close())
	// A header with a newer SQLite version makes a file read-only.
	p.Tolerates = func(err error) bool { return errors.As(err, new(notDatabase)) || errors.Is(err, eventlog.ErrReadOnly) }
	var err error
	p.file, err = os.ReadFile(p.path)
	must(t, err)
	p.sql(func(c *conn) error {
		p.key, err = c.number(`SELECT key FROM sessions WHERE id = 'main'`)
		return err
	})
	return p
}

// put replaces the database by file and removes the files beside it.
func (p *fixture) put(file []byte) {
	p.Helper()
	found, err := filepath.Glob(p.path + "*")
	must(p, err)
	for _, name := range found {
		must(p, os.RemoveAll(name))
	}
	must(p, os.WriteFile(p.path, file, 0o600))
}

// sql changes the database with SQLite.
func (p *fixture) sql(change func(c *conn) error) {
	p.Helper()
	c, err := dial(p.path, "mode=rw")
	must(p, err)
	must(p, change(c))
	must(p, c.close())
}

func (p *fixture) open() *Store { return New(p.path, Options{NoSync: true}) }
