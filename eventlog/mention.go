package eventlog

import (
	"bytes"
	"errors"
	"io"
	"iter"
)

// DigestsIn yields every digest that stands in a text of any form, in order,
// and the error that ended the reading.
func DigestsIn(r io.Reader) iter.Seq2[Digest, error] {
	return func(yield func(Digest, error) bool) {
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
			// One that begins near the end is found again, whole.
			n = copy(buf, buf[n-digestLen+1:n])
		}
	}
}

// digestLen is the length of a digest with its prefix.
const digestLen = len(digestPrefix) + 64

func digestsOf(text []byte) (found []Digest) {
	for {
		i := bytes.Index(text, []byte(digestPrefix))
		if i < 0 || len(text)-i < digestLen {
			return found
		}
		if d, err := ParseDigest(string(text[i : i+digestLen])); err == nil {
			found = append(found, d)
		}
		text = text[i+len(digestPrefix):]
	}
}
