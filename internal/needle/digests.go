package needle

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/convlog/convlog/internal/line"
)

// Digests yields every digest in a text of any form, in order. An error of r ends the
// sequence.
func Digests(r io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		buf, n := make([]byte, 64<<10), 0
		for {
			more, err := io.ReadFull(r, buf[n:])
			n += more
			for _, d := range digestsOf(buf[:n]) {
				if !yield(d, nil) {
					return
				}
			}
			switch {
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
				return
			case err != nil:
				yield("", err)
				return
			}
			// A digest that the buffer cuts is found whole in the next round.
			n = copy(buf, buf[n-line.DigestLen+1:n])
		}
	}
}

func digestsOf(text []byte) (found []string) {
	for {
		i := bytes.Index(text, []byte(line.DigestPrefix))
		if i < 0 || len(text)-i < line.DigestLen {
			return found
		}
		if d := string(text[i : i+line.DigestLen]); isDigest(d) {
			found = append(found, d)
		}
		text = text[i+len(line.DigestPrefix):]
	}
}

func isDigest(d string) bool {
	_, ok := line.DigestSum(d)
	return ok
}
