package sqlite

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Another process stops in the middle of creating the database. A caller without a
// deadline blocks neither callers with a deadline nor Close.
func TestOpenWhileAnotherMakesIt(t *testing.T) {
	path := tempPath(t)
	must(t, os.WriteFile(path, nil, 0o600))
	maker, err := dial(path, writerParameters)
	must(t, err)
	must(t, maker.run("BEGIN EXCLUSIVE"))
	s := New(path)
	patient := make(chan error, 1)
	go func() {
		patient <- s.Append(context.Background(), "a", event.Head{}, eventChain("a", event.Head{}, 1, "x"), false)
	}()
	for len(s.openLock) == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = collect(s.Read(ctx, "a", eventlog.Span{}))
	want(t, context.DeadlineExceeded, err)
	must(t, s.Close())
	want(t, eventlog.ErrClosed, <-patient)
	must(t, maker.run("COMMIT"))
	must(t, maker.close())
	add(t, open(t, path), "a", event.Head{}, 1, "x")
}

// A reader waits for another process that is creating the store. It does not wait if
// the process died.
func TestReadWhileAnotherMakesIt(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		path := tempPath(t)
		must(t, os.WriteFile(path, nil, 0o600))
		reader := open(t, path, Options{ReadOnly: true})
		sessions := make(chan error, 1)
		go func() {
			_, err := collect(reader.Sessions(context.Background()))
			sessions <- err
		}()
		for len(reader.openLock) == 0 {
			time.Sleep(time.Millisecond)
		}
		if !made {
			want(t, errNoSchema, <-sessions)
			continue
		}
		add(t, open(t, path), "a", event.Head{}, 1, "x")
		must(t, <-sessions)
	}
}
