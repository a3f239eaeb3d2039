package jsonl

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/regular"
)

var _ eventlog.Checker = (*Store)(nil)

// Check implements eventlog.Checker. It reports entries that have the name of a file of
// the store but are not regular files, and sessions that have only a torn tail.
func (s *Store) Check(ctx context.Context) iter.Seq2[eventlog.Defect, error] {
	return func(yield func(eventlog.Defect, error) bool) {
		if err := s.beginCall("check", s.dir); err != nil {
			yield(eventlog.Defect{}, err)
			return
		}
		defer s.endCall()
		for _, check := range []func(context.Context, func(eventlog.Defect, error) bool) error{s.checkNames, s.checkUnlisted} {
			if err := check(ctx, yield); errors.Is(err, errStop) {
				return
			} else if err != nil {
				yield(eventlog.Defect{}, fmt.Errorf("check %s: %w", s.dir, err))
				return
			}
		}
	}
}

// checkNames reports named pipes, folders and other special files that have the name of
// a session, of a file beside it, of a lock or of a blob.
func (s *Store) checkNames(ctx context.Context, yield func(eventlog.Defect, error) bool) error {
	if err := s.checkEntries(".", isOwnName, yield); err != nil {
		return err
	}
	dirs, err := s.names(blobDir, 2)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil // reported with the entries
	}
	for i := 0; i < len(dirs) && err == nil; i++ {
		if err = s.alive(ctx); err == nil {
			err = s.checkEntries(blobDir+"/"+dirs[i], isBlobName, yield)
		}
	}
	return err
}

// checkEntries reports the entries of a folder that have a name of the store and are no
// regular files.
func (s *Store) checkEntries(dir string, isOwn func(name string) bool, yield func(eventlog.Defect, error) bool) error {
	entries, err := s.fs.ReadDir(dir)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if isFolder := dir == "." && entry.Name() == blobDir; isFolder == entry.IsDir() && (isFolder || entry.Type().IsRegular()) || !isOwn(entry.Name()) {
			continue
		}
		special := regular.Error{Path: s.path(path.Join(dir, entry.Name())), Mode: entry.Type()}
		d := eventlog.Defect{Path: special.Path, Offset: -1, Rule: "file",
			Detail: fmt.Sprintf("the store has another kind of file of this name, and this is a %s", special.Kind())}
		if !yield(d, nil) {
			return errStop
		}
	}
	return nil
}

// isOwnName reports whether a file in the store's folder has a name that the store
// uses.
func isOwnName(name string) bool {
	return strings.HasSuffix(name, extension) || isLock(name) || slices.Contains([]string{erasingName, identityName, blobDir}, name) ||
		strings.Contains(name, tornInfix) || strings.Contains(name, damagedInfix) || strings.HasSuffix(name, rewriteSuffix)
}

// isBlobName reports whether name is the digest of a blob, in hex digits.
func isBlobName(name string) bool { return hexDigits(name) == 2*sha256.Size }

// checkUnlisted reports sessions without a complete append: Sessions does not list
// them.
func (s *Store) checkUnlisted(ctx context.Context, yield func(eventlog.Defect, error) bool) error {
	rows, err := s.sessionFiles()
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := s.alive(ctx); err != nil {
			return err
		}
		if row.id == "" || !s.isTornOnly(row) {
			continue
		}
		if t, err := s.tailReader(row).lockedTail(ctx); err == nil && (t.Bytes == 0 || t.Offset > 0) {
			continue // it was written or removed meanwhile
		}
		d := eventlog.Defect{Session: row.id, Path: s.path(row.name), Rule: "unlisted", Detail: "the session has only a torn tail"}
		if !yield(d, nil) {
			return errStop
		}
	}
	return nil
}

// isTornOnly reports whether a file has bytes but no complete append. It is false for
// an unreadable file, which Sessions lists with its error.
func (s *Store) isTornOnly(row sessionFile) bool {
	r := &reader{store: s, name: row.name, source: source{session: row.id, path: s.path(row.name)}}
	err := r.open()
	defer r.close()
	return err == nil && r.end == 0 && r.info.Size > 0
}
