package interop

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/internal/written"
)

// begun are the files that resume wrote, by session.
type begun struct {
	files map[string]written.File
	err   error
}

type begunKey struct{ log *eventlog.Log }

// begunIn lists the files that resume wrote, once for the files of an import.
func begunIn(ctx context.Context, log *eventlog.Log) begun {
	return importrun.Shared(ctx, begunKey{log}, func(ctx context.Context, _ begunKey) begun {
		b := begun{files: map[string]written.File{}}
		for info, err := range log.Sessions(ctx) {
			if err != nil {
				return begun{err: err}
			}
			if info.Err != nil {
				continue
			}
			if f, ok := written.Of(&info.First); ok {
				b.files[info.ID] = f
			}
		}
		return b
	})
}

// withoutBegun hides the beginning of a file that resume wrote: the log has it. It blanks the
// lines, so that later lines keep their numbers and offsets. The header stays.
func withoutBegun(ctx context.Context, log *eventlog.Log, format string, src Source) (Source, error) {
	b := begunIn(ctx, log)
	if b.err != nil {
		return src, b.err
	}
	name := filepath.Base(src.Name)
	for session, f := range b.files {
		if f.Format != format || !strings.Contains(name, session) {
			continue
		}
		same, err := beginsWith(src, &f)
		if err != nil || !same {
			return src, err
		}
		open := src.Open
		src.Open = func() (io.ReadCloser, error) {
			r, err := open()
			if err != nil {
				return nil, err
			}
			return &blanked{ReadCloser: r, from: f.Header, to: f.Bytes}, nil
		}
		return src, nil
	}
	return src, nil
}

// beginsWith reports whether a file begins with the bytes that resume wrote.
func beginsWith(src Source, f *written.File) (bool, error) {
	r, closer, err := src.Reader()
	if err != nil {
		return false, err
	}
	defer closer.Close()
	hash := sha256.New()
	n, err := io.CopyN(hash, r, f.Bytes)
	if n < f.Bytes {
		return false, nil
	}
	return event.Digest(fmt.Sprintf("sha256:%x", hash.Sum(nil))) == f.Digest, err
}

// blanked reads blanks in the place of the bytes from to to, except for ends of lines.
type blanked struct {
	io.ReadCloser
	at, from, to int64
}

func (b *blanked) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for i := range n {
		if at := b.at + int64(i); b.from <= at && at < b.to && p[i] != '\n' {
			p[i] = ' '
		}
	}
	b.at += int64(n)
	return n, err
}
