package jsonl

import (
	"errors"
	"path"
	"sync"
)

// faults is an FS whose operations can fail. It counts syncs and does not run them, for
// speed.
type faults struct {
	FS
	mu    sync.Mutex
	fail  func(op, name string) error
	short int // the next write stores this many bytes less and returns ENOSPC
	trace []string

	syncing func() // called during a file sync
}

var errNoSpace = errors.New("no space left")

func newFaults(dir string) *faults { return &faults{FS: Dir(dir)} }

// set makes operations fail with the error that fail returns.
func (f *faults) set(fail func(op, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.trace = fail, nil
}

// failing fails the given operations.
func failing(ops ...string) func(op, name string) error {
	return func(op, name string) error {
		for _, one := range ops {
			if one == op {
				return errors.New("injected: " + op + " " + name)
			}
		}
		return nil
	}
}

func (f *faults) do(op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace = append(f.trace, op+" "+path.Ext(name))
	if f.fail == nil {
		return nil
	}
	return f.fail(op, name)
}

func (f *faults) count(entry string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.trace {
		if one == entry {
			n++
		}
	}
	return n
}

func (f *faults) Open(name string, flag int) (File, error) {
	file, err := f.FS.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: file, fs: f, name: name}, nil
}

func (f *faults) Rename(from, to string) error {
	if err := f.do("rename", to); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *faults) Remove(name string) error {
	if err := f.do("remove", name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *faults) SyncDir(name string) error { return f.do("syncdir", name) }

type faultyFile struct {
	File
	fs   *faults
	name string
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if err := f.fs.do("write", f.name); err != nil {
		return 0, err
	}
	f.fs.mu.Lock()
	short := f.fs.short
	f.fs.short = 0
	f.fs.mu.Unlock()
	n, err := f.File.Write(b[:len(b)-short])
	if short > 0 && err == nil {
		err = errNoSpace
	}
	return n, err
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.fs.do("truncate", f.name); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Sync() error {
	if f.fs.syncing != nil {
		f.fs.syncing()
	}
	return f.fs.do("sync", f.name)
}
