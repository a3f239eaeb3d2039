package sink

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/folder"
	"github.com/convlog/convlog/internal/regular"
)

// opTreeSuffix ends the name of an op tree file.
const opTreeSuffix = ".json.gz"

// Naming returns the paths of the files that name one of the sessions: their own files, the
// files of sessions above them, and files that a killed writer left. They may have erased content of
// the sessions. An unreadable file is an error; the other files are returned too. A folder that
// does not exist has no files.
func (d OpTreeFolder) Naming(sessions ...string) (paths []string, err error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if name := strings.TrimSuffix(entry.Name(), ".tmp"); !strings.HasSuffix(name, opTreeSuffix) {
			continue
		}
		path := filepath.Join(string(d), entry.Name())
		names, failed := namesAny(path, sessions)
		if names {
			paths = append(paths, path)
		} else if failed != nil {
			err = errors.Join(err, fmt.Errorf("read op tree file %s: %w", path, failed))
		}
	}
	return paths, err
}

// namesAny reports whether a file names one of the sessions, in its name or its content.
func namesAny(path string, sessions []string) (bool, error) {
	own := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".tmp"), opTreeSuffix)
	if slices.ContainsFunc(sessions, func(id string) bool { return folder.FileName(id) == own }) {
		return true, nil
	}
	content, err := contentOf(path)
	for _, id := range sessions {
		quoted, failed := jsontext.AppendQuote(nil, id)
		if failed == nil && bytes.Contains(content, quoted) {
			return true, nil
		}
	}
	return false, err
}

// contentOf decompresses a file, up to its damage.
func contentOf(path string) ([]byte, error) {
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// Remove removes files of Naming, durably. A run of one of the sessions that has loaded its
// content before the erasure may write its file again: remove the files after it.
func (d OpTreeFolder) Remove(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove op tree file: %w", err)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return folder.Sync(string(d))
}
