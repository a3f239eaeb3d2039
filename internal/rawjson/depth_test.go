package rawjson

import (
	"strings"
	"testing"
)

func TestDeeper(t *testing.T) {
	for value, depth := range map[string]int{
		`7`: 0, `{}`: 1, `[[],{}]`: 2, `{"a":[{"b":[]}]}`: 4,
		`"[[[["`: 0, `["\"[[", {"\\":"{\\\"[["}]`: 2, `[[[]],[],[]]`: 3,
		strings.Repeat("[", 900) + strings.Repeat("]", 900): 900,
	} {
		if Deeper([]byte(value), depth) || depth > 0 && !Deeper([]byte(value), depth-1) {
			t.Errorf("%.40s has a wrong depth: %d levels", value, depth)
		}
	}
}
