package engine

import (
	"bytes"
	"io"
)

// Sized is a reader that knows how many bytes it has from its start to its end.
type Sized interface{ Size() int64 }

// ReadBlob is io.ReadAll for the body of a blob. If the reader is Sized, ReadBlob
// allocates the body once; io.ReadAll would allocate a large one several times over.
func ReadBlob(r io.Reader) ([]byte, error) {
	s, ok := r.(Sized)
	if !ok || s.Size() <= 0 {
		return io.ReadAll(r)
	}
	body := bytes.NewBuffer(make([]byte, 0, s.Size()+bytes.MinRead))
	_, err := body.ReadFrom(r)
	return body.Bytes(), err
}
