package head_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/internal/head"
)

func TestTheMembersOfAnObject(t *testing.T) {
	for text, want := range map[string]string{
		"\ufeff \n" + `{"a":"x","b":[1,2]}`: `a="x" b=[1,2]`,
		`{"a":"x","b":[1,2`:                 `a="x" b=[1,2`,
		`{"a":"x","b`:                       `a="x"`,
		`{"a":"x","a":"y"}`:                 `a="x"`,
		`{`:                                 ``,
		`[{"a":"x"}]`:                       `none`,
		`"a"`:                               `none`,
		``:                                  `none`,
	} {
		if got := draw(head.Object([]byte(text))); got != want {
			t.Errorf("%s begins with %s, not %s", text, got, want)
		}
	}
}

func TestTheFirstElementOfLists(t *testing.T) {
	h := head.Begins([]byte(` [ [{"a":{"b":"x\u0041","c":"cut`))
	if !h.Has("a") || h.Has("a", "b") || h.In("a").Text("b") != "xA" || h.In("a").Text("c") != "" {
		t.Errorf("it begins with %s", draw(h))
	}
	if h := head.Begins([]byte(`["a"]`)); h != nil || h.Has() {
		t.Errorf("it begins with %s", draw(h))
	}
}

func TestIsArray(t *testing.T) {
	for text, want := range map[string]bool{"\ufeff\n[": true, `{"a":[]}`: false, "": false} {
		if head.IsArray([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestLines(t *testing.T) {
	var got []string
	for line := range head.Lines([]byte("\ufeff\r\n\n {}\r\n \n[1]\n\"cut")) {
		got = append(got, string(line))
	}
	if want := []string{"{}", "[1]", `"cut`}; !slices.Equal(got, want) {
		t.Errorf("lines are %q, not %q", got, want)
	}
}

func draw(h head.Head) string {
	if h == nil {
		return "none"
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		all = append(all, name+"="+string(h[name]))
	}
	return strings.Join(all, " ")
}
