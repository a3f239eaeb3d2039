package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/needle"
)

// erasingName is the file with the digests of the blobs that an erasure is to remove,
// one per line.
const erasingName = ".erasing"

// Erasing implements eventlog.Eraser. A rewrite leaves no bytes of replaced lines.
func (s *Store) Erasing(ctx context.Context) (eventlog.Erasing, error) {
	if err := s.beginCall("read the running erasure of", s.dir); err != nil {
		return eventlog.Erasing{}, err
	}
	defer s.endCall()
	if err := ctx.Err(); err != nil {
		return eventlog.Erasing{}, err
	}
	digests, err := s.readErasing()
	if err != nil {
		return eventlog.Erasing{}, fmt.Errorf("read %s: %w", s.path(erasingName), err)
	}
	return eventlog.Erasing{Blobs: digests}, nil
}

func (s *Store) readErasing() (digests []event.Digest, err error) {
	file, err := s.fs.Open(erasingName, os.O_RDONLY)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closeInto(&err, file)
	for d, err := range needle.Digests(io.NewSectionReader(file, 0, math.MaxInt64)) {
		if err != nil {
			return nil, err
		}
		digests = append(digests, event.Digest(d))
	}
	slices.Sort(digests)
	return slices.Compact(digests), nil
}

// SetErasing implements eventlog.Eraser. It replaces the file, or removes it.
func (s *Store) SetErasing(ctx context.Context, digests []event.Digest) error {
	if err := s.beginChange("record an erasure in", s.dir); err != nil {
		return err
	}
	defer s.endCall()
	if err := ctx.Err(); err != nil {
		return err
	}
	var err error
	if len(digests) > 0 {
		err = s.writeErasing(digests)
	} else {
		err = s.removeErasing()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", s.path(erasingName), err)
	}
	return nil
}

func (s *Store) removeErasing() error {
	err := s.fs.Remove(erasingName)
	if isAbsent(err) {
		return nil
	}
	return errors.Join(err, s.fs.SyncDir("."))
}

func (s *Store) writeErasing(digests []event.Digest) error {
	var text []byte
	for _, d := range digests {
		text = append(append(text, d...), '\n')
	}
	return s.replaceFile(erasingName, text)
}

// replaceFile replaces the file name, or makes it, in one durable step. The caller holds
// the exclusive store lock.
func (s *Store) replaceFile(name string, text []byte) error {
	temp := name + tempSuffix
	file, err := s.fs.Open(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	err = writeAll(file, text)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = s.fs.Rename(temp, name)
	}
	if err != nil {
		_ = s.fs.Remove(temp)
		return err
	}
	return s.fs.SyncDir(".")
}
