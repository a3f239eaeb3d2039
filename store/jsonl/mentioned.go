package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

// Mentioned implements eventlog.Sweeper: it looks through every file beside the
// sessions, whoever put it there.
func (s *Store) Mentioned(ctx context.Context) iter.Seq2[eventlog.Digest, error] {
	return func(yield func(eventlog.Digest, error) bool) {
		names, err := s.sweepable(".", func(name string) bool {
			return name != lockName && !strings.HasSuffix(name, extension) && !strings.HasSuffix(name, tempSuffix)
		})
		for i := 0; i < len(names) && err == nil; i++ {
			err = s.mentioned(ctx, names[i], yield)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield("", fmt.Errorf("look for blobs in %s: %w", s.dir, err))
		}
	}
}

const digestPrefix = "sha256:"

// digestLen is the length of a digest with its prefix.
var digestLen = len(eventlog.DigestOf(nil))

// mentioned yields the digests that stand in a file, of any size and form.
func (s *Store) mentioned(ctx context.Context, name string, yield func(eventlog.Digest, error) bool) (err error) {
	file, err := s.fs.Open(name, os.O_RDONLY)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	buf := make([]byte, largestChunk)
	for at := int64(0); ; at += int64(len(buf) - digestLen) {
		n, err := readFull(file, buf, at)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		for rest := buf[:n]; ; {
			i := bytes.Index(rest, []byte(digestPrefix))
			if i < 0 || len(rest)-i < digestLen {
				break
			}
			if d, err := eventlog.ParseDigest(string(rest[i : i+digestLen])); err == nil && !yield(d, nil) {
				return errStop
			}
			rest = rest[i+len(digestPrefix):]
		}
		if n < len(buf) {
			return nil
		}
	}
}
