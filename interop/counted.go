package interop

import (
	"io"
	"sync/atomic"
)

// counted is src, which reports how much of it was read. What is read again,
// as by a format that looks at a file twice, does not count.
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

// countedFileAt can be read anywhere, which is not counted.
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
