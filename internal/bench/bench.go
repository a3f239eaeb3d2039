//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// bench is one run: its folder, its sizes, and data that several trials share.
type bench struct {
	dir    string
	sizes  sizes
	names  int
	last   string // the last id of name
	closes []func() error
	shared fixtures
}

// sizes say how much is measured.
type sizes struct {
	rounds   int // measured rounds of a comparison
	events   int // events of a round that is not durable
	durable  int // events of a durable round
	shared   int // events of a round that several processes append to one session
	sessions int // sessions of the large store
	large    int // sessions of the large store on a server
	history  int // events of the long session
	turns    int // tool results of a round
	verify   int // bytes of lines to verify
	decades  int // sizes of the rows grow/…: 1,000 events, 10,000, …
	stores   int // sizes of the rows many/…: 1,000 sessions, 10,000, …
}

var (
	full  = sizes{rounds: 9, events: 12_000, durable: 960, shared: 9600, sessions: 10_000, large: 10_000, history: 100_000, turns: 1000, verify: 256 << 20, decades: 3, stores: 2}
	quick = sizes{rounds: 3, events: 6_000, durable: 320, shared: 4800, sessions: 10_000, large: 10_000, history: 100_000, turns: 300, verify: 64 << 20, decades: 2, stores: 2}
)

// newBench creates a work folder in dir or in the folder for temporary files. If that
// folder is in memory, it uses the current folder, because the bench measures a disk.
func newBench(dir string, s sizes) (*bench, error) {
	b := &bench{sizes: s}
	if dir == "" && inMemory(os.TempDir()) {
		dir = "."
	}
	work, err := os.MkdirTemp(dir, "convlog-bench-")
	if err != nil {
		return nil, err
	}
	b.dir = work
	return b, nil
}

// close removes the files before it closes the stores, so that no time goes into
// flushing them.
func (b *bench) close() error {
	errs := []error{os.RemoveAll(b.dir)}
	for _, c := range b.closes {
		if err := c(); !errors.Is(err, eventlog.ErrMoved) { // the folder is gone
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// path returns a new name in the work folder.
func (b *bench) path(suffix string) string {
	b.names++
	return filepath.Join(b.dir, strconv.Itoa(b.names)+suffix)
}

// name returns a new session id.
func (b *bench) name() string {
	b.names++
	b.last = sessionName(b.names)
	return b.last
}

func sessionName(n int) string { return "session-" + strconv.Itoa(n) }

// jsonl opens a log in a new folder.
func (b *bench) jsonl(noSync bool) (log *eventlog.Log, dir string) {
	dir = b.path("")
	return b.open(jsonl.New(dir, jsonl.Options{NoSync: noSync})), dir
}

// sqlite opens a log in a new database.
func (b *bench) sqlite(noSync bool) (log *eventlog.Log, path string) {
	path = b.path(".db")
	return b.open(sqlite.New(path, sqlite.Options{NoSync: noSync})), path
}

func (b *bench) open(store eventlog.Store) *eventlog.Log {
	log := eventlog.Open(store)
	b.closes = append(b.closes, log.Close)
	return log
}
