package jsonl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

// removalsName is the file with the marks of removed sessions, one per line.
const removalsName = ".removed"

var _ eventlog.RemovalKeeper = (*Store)(nil)

// PutRemovals implements eventlog.RemovalKeeper. It replaces the file.
func (s *Store) PutRemovals(ctx context.Context, marks []string) error {
	if err := s.beginChange("mark removed sessions in", s.dir); err != nil {
		return err
	}
	defer s.endCall()
	if err := s.putRemovals(ctx, marks); err != nil {
		return fmt.Errorf("write %s: %w", s.path(removalsName), err)
	}
	return nil
}

func (s *Store) putRemovals(ctx context.Context, marks []string) error {
	has := map[string]bool{}
	var text strings.Builder
	add := func(mark string) {
		if !has[mark] {
			has[mark] = true
			text.WriteString(mark + "\n")
		}
	}
	err := s.eachRemoval(ctx, func(mark string) bool {
		add(mark)
		return true
	})
	if err != nil || len(marks) == 0 {
		return err
	}
	for _, mark := range marks {
		add(mark)
	}
	if err := s.fs.MakeRoot(); err != nil {
		return err
	}
	return s.replaceFile(removalsName, []byte(text.String()))
}

// Removals implements eventlog.RemovalKeeper.
func (s *Store) Removals(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := s.beginCall("read the marks of removed sessions in", s.dir); err != nil {
			yield("", err)
			return
		}
		defer s.endCall()
		if err := s.eachRemoval(ctx, func(mark string) bool { return yield(mark, nil) }); err != nil {
			yield("", fmt.Errorf("read %s: %w", s.path(removalsName), err))
		}
	}
}

// eachRemoval calls each with the stored marks until it returns false.
func (s *Store) eachRemoval(ctx context.Context, each func(mark string) bool) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	file, err := s.fs.Open(removalsName, os.O_RDONLY)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	lines := bufio.NewScanner(io.NewSectionReader(file, 0, math.MaxInt64))
	for lines.Scan() {
		if mark := lines.Text(); mark != "" && !each(mark) {
			return nil
		}
	}
	return lines.Err()
}
