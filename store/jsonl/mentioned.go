package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"strings"

	"github.com/convlog/convlog/event"
)

// Mentioned implements eventlog.Sweeper: it looks through every file beside the
// sessions, whoever put it there.
func (s *Store) Mentioned(ctx context.Context) iter.Seq2[event.Digest, error] {
	return func(yield func(event.Digest, error) bool) {
		names, err := s.sweepable(".", func(name string) bool {
			return name != lockName && name != gateName && !strings.HasSuffix(name, extension) && !strings.HasSuffix(name, tempSuffix)
		})
		for i := 0; i < len(names) && err == nil; i++ {
			err = s.mentioned(ctx, names[i], yield)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield("", fmt.Errorf("look for blobs in %s: %w", s.dir, err))
		}
	}
}

// mentioned yields the digests that stand in a file.
func (s *Store) mentioned(ctx context.Context, name string, yield func(event.Digest, error) bool) (err error) {
	file, err := s.fs.Open(name, os.O_RDONLY)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	whole := io.NewSectionReader(file, 0, math.MaxInt64)
	for d, err := range event.DigestsIn(&canceled{ctx: ctx, r: whole}) {
		if err != nil {
			return err
		}
		if !yield(d, nil) {
			return errStop
		}
	}
	return nil
}
