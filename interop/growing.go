package interop

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// lineSuffixes are the endings of files of lines.
var lineSuffixes = []string{".jsonl", ".ndjson"}

// wholeLines limits a file of lines to its lines that have an end, because a program may
// be writing the last one. A last line that is a whole JSON object counts too. ok is false
// if no line is whole.
func wholeLines(src Source) (_ Source, ok bool, err error) {
	if !slices.Contains(lineSuffixes, filepath.Ext(src.Name)) {
		return src, true, nil
	}
	file, err := os.Open(src.Name)
	if err != nil {
		return src, false, err
	}
	defer file.Close()
	end, rest, err := lastLine(file, src.Size)
	if err != nil {
		return src, false, err
	}
	if rest = bytes.TrimSpace(rest); len(rest) > 0 && !isObject(rest) {
		src.Size = end
	}
	return src, src.Size > 0, nil
}

func isObject(text []byte) bool { return text[0] == '{' && jsontext.Value(text).IsValid() }

// lastLine finds the end of the last whole line in the first size bytes of a file, and
// reads the rest.
func lastLine(file io.ReaderAt, size int64) (end int64, rest []byte, err error) {
	const step = 64 << 10
	for end = size; end > 0 && size-end <= MaxRecord; {
		from := max(0, end-step)
		block := make([]byte, end-from)
		n, err := file.ReadAt(block, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, nil, err
		}
		block = block[:n] // the file may be shorter by now
		if i := bytes.LastIndexByte(block, '\n'); i >= 0 {
			return from + int64(i) + 1, append(block[i+1:], rest...), nil
		}
		rest, end = append(block, rest...), from
	}
	return end, rest, nil
}
