package jsonl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

var _ eventlog.Checker = (*Store)(nil)

// Check implements eventlog.Checker. It reports entries that have the name of a session
// file but are not regular files, and sessions that have only a torn tail.
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

// checkNames reports directories and other special files with the extension of a
// session file.
func (s *Store) checkNames(_ context.Context, yield func(eventlog.Defect, error) bool) error {
	entries, err := s.fs.ReadDir(".")
	if isAbsent(err) {
		return nil
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), extension) || entry.Type().IsRegular() {
			continue
		}
		d := eventlog.Defect{Path: s.path(entry.Name()), Offset: -1, Rule: "file",
			Detail: fmt.Sprintf("it has the name of a session file and is not a regular file: %v", entry.Type())}
		if !yield(d, nil) {
			return errStop
		}
	}
	return err
}

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
