// Package needle finds byte strings in files.
package needle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
)

// chunk is how many bytes are read at once.
const chunk = 1 << 20

// In yields the offset of each occurrence of a needle in a file. Memory is bounded.
func In(ctx context.Context, file io.ReaderAt, needles [][]byte) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		overlap := 0
		for _, n := range needles {
			overlap = max(overlap, len(n)-1)
		}
		buf := make([]byte, overlap+chunk)
		for start := int64(0); ; start += chunk {
			if err := ctx.Err(); err != nil {
				yield(0, err)
				return
			}
			n, err := file.ReadAt(buf, start)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(0, err)
				return
			}
			for _, at := range Places(buf[:n], needles) {
				// An occurrence in the overlap alone belongs to the next chunk.
				if at < chunk && !yield(start+int64(at), nil) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// Places are the indexes of the occurrences of the needles.
func Places(b []byte, needles [][]byte) (places []int) {
	for _, n := range needles {
		for from := 0; len(n) > 0; {
			i := bytes.Index(b[from:], n)
			if i < 0 {
				break
			}
			places = append(places, from+i)
			from += i + 1
		}
	}
	return places
}
