package interop

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/written"
)

// withoutBegun hides the beginning of a file that resume wrote: the log has it. It blanks the
// lines, so that later lines keep their numbers and offsets. The header stays. The name of
// such a file ends with the id of its session.
func withoutBegun(ctx context.Context, log *eventlog.Log, format string, src Source) (Source, error) {
	name := strings.TrimSuffix(filepath.Base(src.Name), filepath.Ext(src.Name))
	session := name[max(0, len(name)-len(uuid.Nil.String())):]
	if uuid.Validate(session) != nil {
		return src, nil
	}
	f, ok, err := begunAs(ctx, log, session)
	if err != nil || !ok || f.Format != format {
		return src, err
	}
	same, err := beginsWith(src, &f)
	if err == nil && !same {
		err = fmt.Errorf("%w: resume wrote the beginning of the file, and the program has changed it; import it into another store", ErrHistory)
	}
	if err != nil {
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

// begunAs is the file that resume wrote for a session. The error of a session that cannot be
// read comes from its import.
func begunAs(ctx context.Context, log *eventlog.Log, session string) (f written.File, ok bool, err error) {
	for e, err := range log.Read(ctx, session, eventlog.All().Own()) {
		if err != nil {
			return f, false, ctx.Err()
		}
		f, ok = written.Of(&e)
		break
	}
	return f, ok, nil
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
