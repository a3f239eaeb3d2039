package main

import (
	"strings"
	"testing"
)

// Two ids that are cut on a terminal stay different.
func TestCutIDsAreDistinct(t *testing.T) {
	long := strings.Repeat("demonstration-", 5)
	for _, c := range [][2]string{
		{long + "4881c73b", long + "720b76e4"},
		{long + "é" + long + "1", long + "é" + long + "2"},
		{long, long + "2"},
		{"a-" + long, "b-" + long},
		{"short", "also short"},
	} {
		x, y := distinct(c[0], c[1], 36), distinct(c[1], c[0], 36)
		if x == y || columns(x) > 36 || columns(y) > 36 {
			t.Errorf("%q and %q", x, y)
		}
	}
}
