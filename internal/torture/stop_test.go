//go:build unix

package torture

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	sign "os/signal"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
)

// heldSession is the session that the stopped process locks. In the tests of watchers
// it is the watched session.
const heldSession = "held"

// heldBatch is how many events the stopped process appends at once.
const heldBatch = 3

// stopPoint is a point at which a process is stopped.
type stopPoint struct {
	how     string
	backend string // "" is both
	// shown is how many events of the stopped append others read.
	shown int
	// blocks is an operation that must wait, allows one that must succeed.
	blocks, allows func(ctx context.Context, l *eventlog.Log) error
}

var stops = []stopPoint{
	{how: "before its write", backend: "jsonl", blocks: appendTo(heldSession), allows: appendTo("other")},
	{how: "in the middle of a line", backend: "jsonl", blocks: appendTo(heldSession), allows: appendTo("other")},
	{how: "between two lines", backend: "jsonl", blocks: appendTo(heldSession), allows: appendTo("other")},
	{how: "before its sync", backend: "jsonl", shown: heldBatch, blocks: appendTo(heldSession), allows: appendTo("other")},
	{how: "in a transaction", backend: "sqlite", blocks: appendTo("other"), allows: readAll(heldSession)},
	{how: "with the store lock", blocks: redactIn(heldSession), allows: appendTo(heldSession)},
}

// holdJob appends to heldSession and stops itself at the stop point.
func holdJob(ctx context.Context, b backend, j job) error {
	if j.How == "in a transaction" {
		return holdTransaction(ctx, databaseIn(j.Dir))
	}
	store := b.open(j.Dir)
	if b.name == "jsonl" {
		store = jsonl.New(j.Dir, jsonl.Options{FS: stoppingFS{jsonl.Dir(j.Dir), j.How}})
	}
	log := eventlog.Open(store)
	if j.How == "with the store lock" {
		if _, err := log.PutBlob(ctx, io.MultiReader(stoppingReader{}, strings.NewReader("body"))); err != nil {
			return err
		}
	}
	_, err := log.Append(ctx, heldSession, eventlog.Any(), plainNote(), plainNote(), plainNote())
	return errors.Join(err, log.Close())
}

// stopMyself stops the process. It returns when another process continues it.
func stopMyself() error {
	continued := make(chan os.Signal, 1)
	sign.Notify(continued, syscall.SIGCONT)
	defer sign.Stop(continued)
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	<-continued
	return nil
}

// stoppingFS is an FS whose session files stop the process.
type stoppingFS struct {
	jsonl.FS
	how string
}

func (fs stoppingFS) Open(name string, flag int) (jsonl.File, error) {
	f, err := fs.FS.Open(name, flag)
	if err != nil || path.Ext(name) != ".jsonl" {
		return f, err
	}
	return stoppingFile{f, fs.how}, nil
}

type stoppingFile struct {
	jsonl.File
	how string
}

func (f stoppingFile) Write(b []byte) (n int, err error) {
	before, here := map[string]int{
		"before its write":        0,
		"in the middle of a line": len(b) / 2,
		"between two lines":       bytes.IndexByte(b, '\n') + 1,
	}[f.how]
	if here {
		if n, err = f.File.Write(b[:before]); err == nil {
			err = stopMyself()
		}
	}
	if err != nil {
		return n, err
	}
	rest, err := f.File.Write(b[n:])
	return n + rest, err
}

func (f stoppingFile) Sync() error {
	if f.how == "before its sync" {
		if err := stopMyself(); err != nil {
			return err
		}
	}
	return f.File.Sync()
}

// stoppingReader is an empty reader that stops the process.
type stoppingReader struct{}

func (stoppingReader) Read([]byte) (int, error) {
	if err := stopMyself(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// holdTransaction stops in a transaction that has written, and rolls it back. It waits
// for a transaction of the search index.
func holdTransaction(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	for _, statement := range []string{"PRAGMA busy_timeout = 60000", "BEGIN IMMEDIATE", "UPDATE sessions SET bytes = bytes + 1", "", "ROLLBACK"} {
		if statement == "" {
			err = stopMyself()
		} else {
			_, err = c.ExecContext(ctx, statement)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(c.Close(), db.Close())
}

func appendTo(session string) func(context.Context, *eventlog.Log) error {
	return func(ctx context.Context, l *eventlog.Log) error {
		_, err := l.Append(ctx, session, eventlog.Any(), plainNote())
		return err
	}
}

func plainNote() event.Event {
	id := event.NewID()
	return event.Event{ID: id, Type: "test:note", Data: fmt.Appendf(nil, "%q", id)}
}

func redactIn(session string) func(context.Context, *eventlog.Log) error {
	return func(ctx context.Context, l *eventlog.Log) error {
		_, err := erase.Redact(ctx, l, session, []int64{1}, erase.RedactOptions{Reason: "torture"})
		return err
	}
}

func readAll(session string) func(context.Context, *eventlog.Log) error {
	return func(ctx context.Context, l *eventlog.Log) error {
		_, err := count(ctx, l, session)
		return err
	}
}

// count reads a session in both directions and returns the number of events.
func count(ctx context.Context, l *eventlog.Log, session string) (forward int, err error) {
	backward := 0
	for _, err := range l.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return 0, err
		}
		forward++
	}
	for _, err := range l.Read(ctx, session, eventlog.All().Backward()) {
		if err != nil {
			return 0, err
		}
		backward++
	}
	if forward != backward {
		return 0, fmt.Errorf("%d events from the start, %d from the end", forward, backward)
	}
	return forward, nil
}

// A process is stopped while it has a lock. Others return at their deadlines, readers
// do not wait, and after the process is continued or killed the others succeed.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		for _, place := range stops {
			if place.backend != "" && place.backend != b.name {
				continue
			}
			for _, killed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s, killed %v", b.name, place.how, killed), func(t *testing.T) {
					parallelUnlessLong(t)
					newFixture(t, b).stopProcess(place, killed)
				})
			}
		}
	}
}

func (s *fixture) stopProcess(place stopPoint, killed bool) {
	l := s.log()
	for range 3 {
		s.must(appendTo(heldSession)(s.ctx, l))
		s.must(appendTo("other")(s.ctx, l))
	}
	c := s.start(job{Do: "hold", How: place.how}, func(string) {})
	c.waitStopped()
	s.checkOthers(l, place)

	before, err := count(s.ctx, l, heldSession)
	s.must(err)
	waiting := make(chan error, 1)
	go func() { waiting <- place.blocks(s.ctx, l) }()
	after := before - place.shown
	if killed {
		s.must(c.kill())
	} else {
		s.must(c.cmd.Process.Signal(syscall.SIGCONT))
		s.must(c.finish())
	}
	s.must(<-waiting)
	s.must(place.blocks(s.ctx, l))
	s.checkEnd(l, place, killed, after)
}

// checkOthers checks the operations of other processes while one is stopped.
func (s *fixture) checkOthers(l *eventlog.Log, place stopPoint) {
	s.Helper()
	seen, err := count(s.ctx, l, heldSession)
	s.must(err)
	if want := 3 + place.shown; seen != want {
		s.Errorf("readers see %d events, want %d", seen, want)
	}
	other, err := count(s.ctx, l, "other")
	s.must(err)
	for range 3 {
		ctx, cancel := context.WithTimeout(s.ctx, 20*time.Millisecond)
		err = place.blocks(ctx, l)
		cancel()
		s.wantErr(context.DeadlineExceeded, err)
		if errors.Is(err, eventlog.ErrUnknownOutcome) || strings.Contains(err.Error(), "\n") {
			s.Errorf("got error %v", err)
		}
	}
	for session, want := range map[string]int{heldSession: seen, "other": other} {
		got, err := count(s.ctx, l, session)
		s.must(err)
		if got != want {
			s.Errorf("session %q has %d events after abandoned appends, want %d", session, got, want)
		}
	}
	s.must(place.allows(s.ctx, l))
	s.must(readAll("other")(s.ctx, s.log())) // this log has to open the store first
	for info, err := range l.Sessions(s.ctx) {
		s.must(errors.Join(err, info.Err))
	}
}

// checkEnd checks that all acknowledged events are stored and no tail is torn. events
// is how many events the session had before the stopped append.
func (s *fixture) checkEnd(l *eventlog.Log, place stopPoint, killed bool, events int) {
	s.Helper()
	got, err := count(s.ctx, l, heldSession)
	s.must(err)
	want := map[string]int{"jsonl": events + 2, "sqlite": events}[place.backend]
	if place.backend == "" {
		want = events + 1 // one redacted event: the second redaction adds none
	}
	if appends := place.how != "in a transaction"; appends && (!killed || place.shown > 0) {
		want += heldBatch
	}
	if got != want {
		s.Errorf("%d events at the end, want %d", got, want)
	}
	for _, session := range []string{heldSession, "other"} {
		s.must(verifyClean(s.ctx, l, session, event.Head{}))
	}
}

// waitStopped waits until the child has stopped itself.
func (c *child) waitStopped() {
	c.fixture.Helper()
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || !status.Stopped() {
			c.fixture.Fatalf("the child did not stop: %v, %v: %s", status, err, c.errs)
		}
		return
	}
}
