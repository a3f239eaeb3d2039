package openhands

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/convlog/convlog/interop"
)

// A conversation folder has the state, in newer versions, and a folder with a file for
// each event.
const (
	stateName    = "base_state.json"
	eventsFolder = "events"
	oldestName   = "0.json" // the first event in older versions
)

// eventFile matches the file name of an event.
var eventFile = regexp.MustCompile(`^(?:event-)?(\d{1,9})(?:-[0-9A-Za-z-]+)?\.json$`)

// numberOf is the number of an event, from its file name; ok is false for other files.
func numberOf(path string) (n int, ok bool) {
	found := eventFile.FindStringSubmatch(filepath.Base(path))
	if found == nil || filepath.Base(filepath.Dir(path)) != eventsFolder {
		return 0, false
	}
	n, err := strconv.Atoi(found[1])
	return n, err == nil
}

// conversationName is the name of the conversation folder of a file; empty if there is
// none.
func conversationName(path string) string {
	if _, ok := numberOf(path); ok {
		return filepath.Base(filepath.Dir(filepath.Dir(path)))
	}
	if filepath.Base(path) == stateName {
		return filepath.Base(filepath.Dir(path))
	}
	return ""
}

// Gathered returns the state file of an event's conversation, or the file of its first
// event.
func (Format) Gathered(path string, _ []byte) string { return first(path) }

// first returns the file that represents the conversation of a file; empty if there is
// none.
func first(path string) string {
	if _, ok := numberOf(path); !ok {
		if filepath.Base(path) == stateName {
			return path
		}
		return ""
	}
	events := filepath.Dir(path)
	for _, candidate := range []string{filepath.Join(filepath.Dir(events), stateName), filepath.Join(events, oldestName)} {
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() {
			return candidate
		}
	}
	return ""
}

// numberBefore is the number of the event before the n-th in a folder.
func numberBefore(events string, n int) (before int, ok bool) {
	if info, err := os.Stat(filepath.Join(events, strconv.Itoa(n-1)+".json")); err == nil && info.Mode().IsRegular() {
		return n - 1, true
	}
	entries, err := os.ReadDir(events)
	if err != nil {
		return 0, false
	}
	for _, entry := range entries {
		if number, is := numberOf(filepath.Join(events, entry.Name())); is && number < n && (!ok || number > before) {
			before, ok = number, true
		}
	}
	return before, ok
}

// gatherFiles returns a source with all files of a conversation, if src is one of them.
// Each file is a value of the source.
func gatherFiles(src interop.Source) (interop.Source, error) {
	first := first(src.Name)
	if first == "" {
		return src, nil
	}
	files, err := filesOf(first)
	if err != nil {
		return src, fmt.Errorf("read %s: %w", src.Name, err)
	}
	return interop.Source{Name: first, Open: func() (io.ReadCloser, error) { return &chain{files: files}, nil }}, nil
}

// filesOf returns the files of a conversation in order. first represents it.
func filesOf(first string) (files []string, err error) {
	events := filepath.Dir(first)
	if filepath.Base(first) == stateName {
		files = append(files, first)
		events = filepath.Join(events, eventsFolder)
	}
	entries, err := os.ReadDir(events)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var numbered []string
	for _, entry := range entries {
		path := filepath.Join(events, entry.Name())
		if _, ok := numberOf(path); ok && entry.Type().IsRegular() {
			numbered = append(numbered, path)
		}
	}
	slices.SortStableFunc(numbered, func(a, b string) int {
		m, _ := numberOf(a)
		n, _ := numberOf(b)
		return cmp.Compare(m, n)
	})
	return append(files, numbered...), nil
}
