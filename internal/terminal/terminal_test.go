package terminal_test

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/convlog/convlog/internal/terminal"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb é 名 😀":                     "a\tb é 名 😀",
		"\x1b[2J\r\n":                    `\x1b[2J\x0d\x0a`,
		"\x7f\u009b31m":                  `\x7f\x9b31m`,
		"\x9b31m\xff":                    `\x9b31m\xff`, // bytes of no character
		"a\u202etxt.exe\u2066\u2069":     `a\u202etxt.exe\u2066\u2069`,
		"\u061c\u200e\u200f\u2028\ufffd": `\u061c\u200e\u200f\u2028` + "\ufffd",
	} {
		if got := terminal.Clean(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// A guard gives the same text for any division into writes.
func TestGuard(t *testing.T) {
	const text = "a\x1b[31mred\x1b[0m \x1b[2J é\u009b \u202e\r\n\xff\x1b[999999999999999999m\x1b"
	for colours, want := range map[bool]string{
		true:  "a\x1b[31mred\x1b[0m \\u001b[2J é\\u009b \\u202e\\u000d\n\\xff\\u001b[999999999999999999m\\u001b",
		false: "a\\u001b[31mred\\u001b[0m \\u001b[2J é\\u009b \\u202e\\u000d\n\\xff\\u001b[999999999999999999m\\u001b",
	} {
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			g := terminal.NewGuard(&out, colours)
			for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if _, err := g.Write(rest[:min(size, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.Flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Fatalf("colours %v, %d bytes a write: %q, want %q", colours, size, out.String(), want)
			}
		}
	}
}

// No text passes a guard with a control character.
func FuzzGuard(f *testing.F) {
	f.Add([]byte("\x1b[0;31mx\u202e\xc2"), 1)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		var out bytes.Buffer
		g := terminal.NewGuard(&out, false)
		at = max(0, min(at, len(text)))
		_, _ = g.Write(text[:at])
		_, _ = g.Write(text[at:])
		_ = g.Flush()
		if !utf8.Valid(out.Bytes()) {
			t.Errorf("%q becomes %q", text, out.Bytes())
		}
		for _, r := range out.String() {
			if r != '\n' && terminal.Control(r) {
				t.Errorf("%q becomes %q", text, out.Bytes())
			}
		}
	})
}
