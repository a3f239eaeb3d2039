package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/needle"
)

// Sweep implements eventlog.Sweeper. It yields, and with remove deletes, temporary
// files, empty session files and files of the catalog with a row of a missing session. It skips the files of a session while another process
// holds the session's lock.
func (s *Store) Sweep(ctx context.Context, remove bool) iter.Seq2[eventlog.FilePlace, error] {
	return func(yield func(eventlog.FilePlace, error) bool) {
		begin := s.beginCall
		if remove {
			begin = s.beginChange
		}
		err := begin("sweep", s.dir)
		if err == nil {
			defer s.endCall()
			err = s.sweep(ctx, remove, yield)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(eventlog.FilePlace{}, fmt.Errorf("sweep %s: %w", s.dir, err))
		}
	}
}

func (s *Store) sweep(ctx context.Context, remove bool, yield func(eventlog.FilePlace, error) bool) error {
	spools, err := s.listFiles(blobDir, func(name string) bool { return strings.HasPrefix(name, tempPrefix) })
	if err != nil {
		return err
	}
	files, err := s.listFiles(".", func(name string) bool { return ownerOf(name) != "" })
	if err != nil {
		return err
	}
	rows, err := s.unusedRows()
	if err != nil {
		return err
	}
	swept := false
	for _, name := range slices.Concat(spools, rows, files) {
		leftover, err := s.inspectLeftover(name, remove)
		if err = errors.Join(err, s.alive(ctx)); err != nil {
			return err
		}
		if leftover.Path == "" {
			continue
		}
		swept = true
		if !yield(leftover, nil) {
			return errStop
		}
	}
	if swept && remove {
		return s.fs.SyncDir(".")
	}
	return nil
}

// listFiles returns the sorted paths of the regular files in dir for which pick is
// true.
func (s *Store) listFiles(dir string, pick func(name string) bool) ([]string, error) {
	entries, err := s.fs.ReadDir(dir)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && pick(entry.Name()) {
			names = append(names, strings.TrimPrefix(dir+"/"+entry.Name(), "./"))
		}
	}
	slices.Sort(names)
	return names, nil
}

// ownerOf returns the session file whose lock guards name: for a temporary file, the
// session file it belongs to; for a session file, the file itself. It returns "" for
// other names.
func ownerOf(name string) string {
	if strings.HasSuffix(name, extension) {
		return name
	}
	if base, ok := strings.CutSuffix(name, rewriteSuffix); ok {
		return base + extension
	}
	saved, ok := strings.CutSuffix(name, tempSuffix)
	if !ok {
		return ""
	}
	for _, infix := range []string{tornInfix, damagedInfix} {
		at := strings.LastIndex(saved, infix)
		if at < 0 {
			continue
		}
		if _, err := strconv.ParseUint(saved[at+len(infix):], 10, 63); err == nil {
			return saved[:at] + extension
		}
	}
	return ""
}

// inspectLeftover returns the leftover at name and removes it if remove is true. It
// returns the zero Leftover if the file is in use or holds a session.
func (s *Store) inspectLeftover(name string, remove bool) (l eventlog.FilePlace, err error) {
	if owner := ownerOf(name); owner != "" {
		free, unlock, err := s.tryOwnerLock(owner)
		if err != nil || !free {
			return l, err
		}
		defer unlock()
	}
	info, err := s.fs.Stat(name)
	if isAbsent(err) {
		return l, nil
	}
	if err != nil || strings.HasSuffix(name, extension) && info.Size > 0 {
		return l, err
	}
	if remove {
		if err := s.fs.Remove(name); err != nil && !isAbsent(err) {
			return l, err
		}
	}
	return eventlog.FilePlace{Path: s.path(name), Bytes: info.Size}, nil
}

// tryOwnerLock takes the lock of a session file, or returns false if another open file
// holds it. A missing file counts as free.
func (s *Store) tryOwnerLock(name string) (free bool, unlock func(), err error) {
	file, err := s.fs.Open(name, os.O_RDONLY)
	if isAbsent(err) {
		return true, func() {}, nil
	}
	if err != nil {
		return false, nil, err
	}
	unlock = func() { _ = file.Close() }
	free, err = file.TryLock(true)
	if free {
		free, err = s.hasName(file, name)
	}
	if err != nil || !free {
		unlock()
	}
	return free, unlock, err
}

// hasName reports whether an open file still has the given name.
func (s *Store) hasName(file File, name string) (bool, error) {
	open, err := file.Stat()
	if err != nil {
		return false, err
	}
	there, err := s.fs.Stat(name)
	if isAbsent(err) {
		return false, nil
	}
	return err == nil && open.Inode == there.Inode, err
}

// Mentioned implements eventlog.Sweeper. It yields each digest in the files that are
// neither session files nor temporary: saved tails, backup copies and files of other
// programs.
func (s *Store) Mentioned(ctx context.Context) iter.Seq2[event.Digest, error] {
	return func(yield func(event.Digest, error) bool) {
		if err := s.beginCall("search for digests in", s.dir); err != nil {
			yield("", err)
			return
		}
		defer s.endCall()
		names, err := s.listFiles(".", func(name string) bool {
			return !isLock(name) && name != erasingName && name != identityName && !strings.HasSuffix(name, extension) && !strings.HasSuffix(name, tempSuffix)
		})
		for i := 0; i < len(names) && err == nil; i++ {
			err = s.yieldDigests(ctx, names[i], yield)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield("", fmt.Errorf("search for digests in %s: %w", s.dir, err))
		}
	}
}

// yieldDigests yields the digests in one file.
func (s *Store) yieldDigests(ctx context.Context, name string, yield func(event.Digest, error) bool) (err error) {
	file, err := s.fs.Open(name, os.O_RDONLY)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	whole := io.NewSectionReader(file, 0, math.MaxInt64)
	for d, err := range needle.Digests(&aliveReader{ctx: ctx, store: s, r: whole}) {
		if err != nil {
			return err
		}
		if !yield(event.Digest(d), nil) {
			return errStop
		}
	}
	return nil
}
