package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/upkeep/transfer"
)

// exportFile is an export of logtool: a file or a stream.
type exportFile struct {
	name string
	in   io.Reader // nil for a file
}

func (f exportFile) String() string {
	if f.name == stdinName {
		return "standard input"
	}
	return f.name
}

const headBytes = 16

// writtenByExport recognizes an export by its first bytes: an event, a blob of the first
// event, or the list of a tree.
func writtenByExport(head []byte) bool {
	return slices.ContainsFunc([]string{`{"crc":"`, `{"blob":"sha256`, `{"tree":[`}, func(mark string) bool {
		return bytes.HasPrefix(head, []byte(mark))
	})
}

// holdsLog reports whether a file is a session of a log.
func holdsLog(files []string) bool {
	return slices.ContainsFunc(files, func(path string) bool {
		head, err := beginning(path)
		return err == nil && writtenByExport(head)
	})
}

// pathOnly rejects an export with --path active.
func pathOnly(name string) error {
	return fmt.Errorf("%s has active paths only, without hashes: export the sessions without --path, and import that", name)
}

// beginning reads the first bytes of a file; it is empty for a folder.
func beginning(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if bytes.HasPrefix(head, gzipMark) {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		if packed, err := gzip.NewReader(f); err == nil { // else another file
			unpacked := make([]byte, headBytes)
			n, _ := io.ReadFull(packed, unpacked) // import reports the error again
			return unpacked[:n], nil
		}
	}
	return head[:n], nil
}

// gzipMark begins a compressed file.
var gzipMark = []byte{0x1f, 0x8b}

// unpack reads the lines of a bundle, which is compressed, and other bytes as they are.
func unpack(r io.Reader) (in *bufio.Reader, packed bool, err error) {
	b := bufio.NewReaderSize(r, 1<<20)
	if head, _ := b.Peek(len(gzipMark)); !bytes.Equal(head, gzipMark) {
		return b, false, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, true, err
	}
	return bufio.NewReaderSize(z, 1<<20), true, nil
}

// adopt imports the export up to the first bad line.
func (f *exportFile) adopt(ctx context.Context, log *eventlog.Log, opts transfer.Options) interop.Row {
	row := interop.Row{Path: f.name, Format: ownFormat}
	in := f.in
	if in == nil {
		file, err := os.Open(f.name)
		if err != nil {
			row.Err = err
			return row
		}
		defer file.Close()
		if in, _, row.Err = unpack(file); row.Err != nil {
			return row
		}
	}
	adopted, err := transfer.Import(ctx, log, in, opts)
	row.Err = redactionHint(err, copiesHint)
	for _, s := range adopted {
		row.Records += int(s.Read)
		if s.LeftOut {
			row.Skipped += int(s.Read)
			row.LeftOut = append(row.LeftOut, s.Session)
			continue
		}
		row.Imported += int(s.Stored)
		row.Present += int(s.Read - s.Stored)
		row.Events += int(s.Stored)
		if !slices.Contains(row.Sessions, s.Session) {
			row.Sessions = append(row.Sessions, s.Session)
		}
	}
	return row
}

// applyHint says how to obey the redactions of an export or a store.
const applyHint = "to erase them here too, repeat this with --apply-redactions"

// copiesHint says how to store copies of erased events that an import or a conversion left out.
const (
	copiesHint        = "to store them, repeat this with --even-erased"
	convertCopiesHint = "to store them, export the session and import it with --even-erased"
)

// redactionHint says how to continue after an error of redactions; copies is the hint for copies
// of erased events.
func redactionHint(err error, copies string) error {
	var order *transfer.RedactionError
	switch {
	case !errors.As(err, &order):
		return err
	case order.Original != "":
		return fmt.Errorf("%w; %s", err, copies)
	}
	return fmt.Errorf("%w; %s", err, applyHint)
}

// candidate is the export in the list of --dry-run.
func (f *exportFile) candidate() interop.Candidate {
	c := interop.Candidate{Path: f.name, Format: ownFormat}
	if info, err := os.Stat(f.name); err == nil && f.in == nil {
		c.Bytes = info.Size()
	}
	return c
}
