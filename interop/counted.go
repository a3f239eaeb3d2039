package interop

import (
	"io"
	"sync/atomic"
)

// counted wraps src and reports the number of bytes read. Bytes that are read a
// second time do not count.
func counted(src Source, report func(n int64)) Source {
	if report == nil {
		return src
	}
	furthest := new(atomic.Int64)
	open := src.Open
	src.Open = func() (io.ReadCloser, error) {
		f, err := open()
		if err != nil {
			return nil, err
		}
		counted := &countedFile{ReadCloser: f, furthest: furthest, report: report}
		if at, ok := f.(io.ReaderAt); ok {
			return &countedFileAt{counted, at}, nil
		}
		return counted, nil
	}
	return src
}

type countedFile struct {
	io.ReadCloser
	at       int64
	furthest *atomic.Int64
	report   func(n int64)
}

// countedFileAt adds ReadAt, which counts nothing.
type countedFileAt struct {
	*countedFile
	io.ReaderAt
}

func (f *countedFile) Read(b []byte) (int, error) {
	n, err := f.ReadCloser.Read(b)
	f.at += int64(n)
	for {
		before := f.furthest.Load()
		if f.at <= before {
			return n, err
		}
		if f.furthest.CompareAndSwap(before, f.at) {
			f.report(f.at - before)
			return n, err
		}
	}
}
