package files

import "testing"

func TestHasPart(t *testing.T) {
	for _, c := range []struct {
		text, lines string
		from        int
		want        bool
	}{
		{"a\nb\nc\n", "a\n", 1, true},
		{"a\nb\nc\n", "a", 1, true},
		{"a\nb\nc\n", "b\nc\n", 2, true},
		{"a\nb\nc", "b\nc\n", 2, true},
		{"a\n\nb\n", "a\n\n", 1, true},
		{"a\nb\nc\n", "ab", 1, false},
		{"ab\nc\n", "a\n", 1, false},
		{"a\nb\n", "c\n", 2, false},
		{"a\nb\n", "c\n", 9, false},
		{"a\nb\n", "", 9, true},
		{"\ufeffa\r\nb\r\n", "a\nb\n", 1, true},
	} {
		if got := hasPart(c.text, c.lines, c.from); got != c.want {
			t.Errorf("lines %q of %q at %d: %v", c.lines, c.text, c.from, got)
		}
	}
}
