// Package special makes files that are no regular files, for tests.
package special

import (
	"os"
	"path/filepath"
	"testing"
)

// Kind makes one kind of special file at a path.
type Kind struct {
	Name string
	Make func(t testing.TB, path string)
}

// Kinds returns all kinds that need no privileges.
func Kinds() []Kind {
	return append(systemKinds(),
		Kind{"folder", func(t testing.TB, path string) { must(t, os.Mkdir(path, 0o700)) }},
		Kind{"link to itself", func(t testing.TB, path string) { must(t, os.Symlink(filepath.Base(path), path)) }},
		Kind{"link to nothing", func(t testing.TB, path string) { must(t, os.Symlink("missing", path)) }},
	)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
