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

// Check implements eventlog.Checker: it finds names that are not those of
// session files and look like them, and sessions that have nothing but a torn
// tail.
func (s *Store) Check(ctx context.Context) iter.Seq2[eventlog.Defect, error] {
	return func(yield func(eventlog.Defect, error) bool) {
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

// checkNames finds what has the name of a session file and is none.
func (s *Store) checkNames(_ context.Context, yield func(eventlog.Defect, error) bool) error {
	if err := s.usable("check", s.dir); err != nil {
		return err
	}
	entries, err := s.fs.ReadDir(".")
	if isAbsent(err) {
		return nil
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), extension) || entry.Type().IsRegular() {
			continue
		}
		d := eventlog.Defect{Path: s.path(entry.Name()), Offset: -1, Rule: "file",
			Detail: fmt.Sprintf("it has the name of a session's file and is none: %v", entry.Type())}
		if !yield(d, nil) {
			return errStop
		}
	}
	return err
}

// checkUnlisted finds sessions without a complete append.
func (s *Store) checkUnlisted(ctx context.Context, yield func(eventlog.Defect, error) bool) error {
	rows, err := s.sessionFiles()
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		if row.id == "" || !s.isTornOnly(row) {
			continue
		}
		d := eventlog.Defect{Session: row.id, Path: s.path(row.name), Rule: "unlisted", Detail: "it has nothing but a torn tail"}
		if !yield(d, nil) {
			return errStop
		}
	}
	return nil
}

// isTornOnly reports that a file has bytes and no complete append. One that
// cannot be read is listed with its error.
func (s *Store) isTornOnly(row sessionFile) bool {
	r := &reader{store: s, name: row.name, source: source{session: row.id, path: s.path(row.name)}}
	err := r.open()
	defer r.close()
	return err == nil && r.end == 0 && r.info.Size > 0
}
