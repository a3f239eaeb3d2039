package term

import (
	"io"
	"strings"
	"testing"
)

// Lines break at spaces, keep their indent, and lose nothing but spaces.
func TestWrapper(t *testing.T) {
	for text, want := range map[string]string{
		"short\n":                        "short\n",
		"  one two three four\n":         "  one two\n  three four\n",
		"0123456789abcdef\n":             "0123456789ab\ncdef\n",
		"\x1b[31mone two three\x1b[0m\n": "\x1b[31mone two\nthree\x1b[0m\n",
		"名名名名名名名\n":                      "名名名名名名\n名\n",
		"no end of a line":               "no end of a\nline",
		"twelve colum\x1b[0m\n":          "twelve colum\x1b[0m\n",
		"                    deep\n":     "deep\n",
	} {
		for size := 1; size <= len(text); size++ {
			var out strings.Builder
			w := NewWrapper(&out, 12)
			for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
				if _, err := io.WriteString(w, rest[:min(size, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Errorf("%q becomes %q, want %q", text, out.String(), want)
				break
			}
		}
	}
}
