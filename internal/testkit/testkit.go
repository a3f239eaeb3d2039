// Package testkit has test helpers for several packages.
package testkit

import (
	"context"
	"io/fs"
	"os"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Open opens a log and closes it at the end of the test.
func Open(t testing.TB, s eventlog.Store, opts ...eventlog.Options) *eventlog.Log {
	t.Helper()
	l := eventlog.Open(s, opts...)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Fork creates a fork of parent after seq, with one message.
func Fork(ctx context.Context, l *eventlog.Log, name, parent string, seq int64) (event.Head, error) {
	at, err := l.Event(ctx, parent, seq)
	if err != nil {
		return event.Head{}, err
	}
	fork := event.New(event.Fork{Parent: parent, Seq: seq, EventID: at.ID, Hash: at.Hash()})
	return l.Append(ctx, name, eventlog.New(), fork, event.UserMessage("in the fork"))
}

// Collect returns the events of a sequence up to its first error.
func Collect(events func(func(event.Event, error) bool)) (all []event.Event, err error) {
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// ReadFile returns the content of a file.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// WriteFile writes a file.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Tear appends bytes to a file, like an unfinished write.
func Tear(t testing.TB, path, rest string) {
	t.Helper()
	WriteFile(t, path, ReadFile(t, path)+rest)
}

// FilesOf returns the content of every file below a directory, by name.
func FilesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
