//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The raw side of the comparisons: the same bytes, with only the necessary system
// calls.

// rawFile is a file opened for appending.
type rawFile struct{ fd int }

func createRaw(path string) (*rawFile, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	return &rawFile{fd: fd}, nil
}

func (f *rawFile) close() error { return unix.Close(f.fd) }

func (f *rawFile) write(b []byte) error {
	n, err := unix.Write(f.fd, b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// appendLocked appends b as one of several processes must: lock, check that the file is
// unchanged, write, unlock.
func (f *rawFile) appendLocked(b []byte) error {
	var st unix.Stat_t
	return errors.Join(
		unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB),
		unix.Fstat(f.fd, &st),
		f.write(b),
		unix.Flock(f.fd, unix.LOCK_UN),
	)
}

// appendSynced appends b durably.
func (f *rawFile) appendSynced(b []byte) error {
	if err := f.write(b); err != nil {
		return err
	}
	return syncData(f.fd)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crcStart is the offset of a line's checksum; the checksum covers the bytes from
// bodyStart on.
const crcStart, bodyStart = len(`{"crc":"`), len(`{"crc":"00000000",`)

// rawRead splits a file into lines and checks each checksum. It reuses its buffer.
func rawRead(path string) (lines int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := bufio.NewReaderSize(f, 256<<10)
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		if !sumHolds(bytes.TrimSuffix(line, []byte{'\n'})) {
			return lines, fmt.Errorf("line %d of %s: checksum", lines+1, path)
		}
		lines++
	}
}

func sumHolds(line []byte) bool {
	var want [4]byte
	if _, err := hex.Decode(want[:], line[crcStart:crcStart+8]); err != nil {
		return false
	}
	return binary.BigEndian.Uint32(want[:]) == crc32.Checksum(line[bodyStart:], castagnoli)
}

// endSize is how many bytes rawList reads at each end of a file.
const endSize = 4096

// rawList opens every file of a folder and reads its start and its end.
func rawList(dir string) (files int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, endSize)
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".jsonl" {
			continue
		}
		if err := readEnds(filepath.Join(dir, entry.Name()), buf); err != nil {
			return files, err
		}
		files++
	}
	return files, nil
}

func readEnds(path string, buf []byte) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for _, at := range []int64{0, max(info.Size()-endSize, 0)} {
		if _, err := f.ReadAt(buf, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}
