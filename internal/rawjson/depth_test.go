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

func TestWider(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":1,"b":1,"c":1}`: false, `{"a":1,"b":1,"c":1,"d":1}`: true, `{"a":1,"b":1,"c":1,"d`: true,
		`{"a":[1,2,3,4,5],"b":{"c":1,"d":1,"e":1}}`: false, `{"a":"1,2,3,4,\",5"}`: false, `[1,2,3,4,5,6,7,8,9]`: false,
		`{"a":1,"b":1,"c":1}{"d":1,"e":1}`: false, ``: false,
	} {
		if got := Wider([]byte(text), 3); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
