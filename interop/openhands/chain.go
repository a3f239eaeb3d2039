package openhands

import (
	"io"
	"os"
	"strings"
)

// chain reads files one after the other, with a newline after each.
type chain struct {
	files []string
	open  *os.File
	end   io.Reader // the newline after a file; nil before its end
}

func (c *chain) Read(b []byte) (int, error) {
	for {
		r := io.Reader(c.open)
		switch {
		case c.end != nil:
			r = c.end
		case c.open == nil && len(c.files) == 0:
			return 0, io.EOF
		case c.open == nil:
			f, err := os.Open(c.files[0])
			if err != nil {
				return 0, err
			}
			c.open, c.files, r = f, c.files[1:], f
		}
		n, err := r.Read(b)
		if err == io.EOF {
			err = c.next()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next moves on at the end of a file or of the newline after it.
func (c *chain) next() error {
	if c.end != nil {
		c.end = nil
		return nil
	}
	c.end = strings.NewReader("\n")
	return c.Close()
}

// Close closes the open file.
func (c *chain) Close() error {
	if c.open == nil {
		return nil
	}
	err := c.open.Close()
	c.open = nil
	return err
}
