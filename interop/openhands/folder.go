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
	"strings"

	"github.com/convlog/convlog/interop"
)

// A conversation is kept in a folder: its state, which newer versions have, and the
// folder of its events, each in a file.
const (
	stateName    = "base_state.json"
	eventsFolder = "events"
	oldestName   = "0.json" // the first event, as older versions name it
)

// eventFile matches the name of the file of an event.
var eventFile = regexp.MustCompile(`^(?:event-)?(\d{1,9})(?:-[0-9A-Za-z-]+)?\.json$`)

// numberOf is the number of an event, by its file; ok is false for other files.
func numberOf(path string) (n int, ok bool) {
	found := eventFile.FindStringSubmatch(filepath.Base(path))
	if found == nil || filepath.Base(filepath.Dir(path)) != eventsFolder {
		return 0, false
	}
	n, err := strconv.Atoi(found[1])
	return n, err == nil
}

// conversation is the name of the folder of a conversation; empty for files that
// belong to none.
func conversation(path string) string {
	if _, ok := numberOf(path); ok {
		return filepath.Base(filepath.Dir(filepath.Dir(path)))
	}
	if filepath.Base(path) == stateName {
		return filepath.Base(filepath.Dir(path))
	}
	return ""
}

// Gathered is the state of the conversation that an event belongs to, or the file of
// its first event.
func (Format) Gathered(path string, _ []byte) string { return first(path) }

// first is the file that stands for the conversation that a file belongs to; empty
// if there is none.
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

// gather makes a source of all files of a conversation, if the source is one of
// them. Each is a value of it.
func gather(src interop.Source) (interop.Source, error) {
	first := first(src.Name)
	if first == "" {
		return src, nil
	}
	files, err := filesOf(first)
	if err != nil {
		return src, fmt.Errorf("read %s: %w", src.Name, err)
	}
	return interop.Source{Name: first, Open: func() (io.ReadCloser, error) { return &chain{left: files}, nil }}, nil
}

// filesOf are the files of the conversation that one stands for, in order.
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

// chain reads files one behind the other, with a line's end behind each.
type chain struct {
	left []string
	open *os.File
	end  io.Reader // of the file that was read last
}

func (c *chain) Read(b []byte) (int, error) {
	for {
		r := io.Reader(c.open)
		switch {
		case c.end != nil:
			r = c.end
		case c.open == nil && len(c.left) == 0:
			return 0, io.EOF
		case c.open == nil:
			f, err := os.Open(c.left[0])
			if err != nil {
				return 0, err
			}
			c.open, c.left, r = f, c.left[1:], f
		}
		n, err := r.Read(b)
		if err == io.EOF {
			err = c.next()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next goes on behind what was read to its end.
func (c *chain) next() error {
	if c.end != nil {
		c.end = nil
		return nil
	}
	c.end = strings.NewReader("\n")
	return c.Close()
}

// Close closes the file that is being read.
func (c *chain) Close() error {
	if c.open == nil {
		return nil
	}
	err := c.open.Close()
	c.open = nil
	return err
}
