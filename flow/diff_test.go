package flow

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
)

func canonical(t interface{ Fatal(args ...any) }, doc string) jsontext.Value {
	v, err := projection.Canonical(jsontext.Value(doc))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDiffs(t *testing.T) {
	for _, tt := range []struct{ name, from, to, want string }{
		{"no change", `{"a":1}`, ` { "a" : 1 } `, `[]`},
		{"order of members", `{"a":1,"b":2}`, `{"b":2,"a":1}`, `[]`},
		{"escapes of a string", `{"a":"A"}`, `{"a":"\u0041"}`, `[]`},
		{"digits of a number", `{"a":1}`, `{"a":1.0}`, `[{"op":"replace","path":"/a","value":1.0}]`},
		{"a large number", `[9007199254740992]`, `[9007199254740993]`, `[{"op":"replace","path":"/0","value":9007199254740993}]`},
		{"a member is added", `{}`, `{"a":{"c":1,"b":null}}`, `[{"op":"add","path":"/a","value":{"b":null,"c":1}}]`},
		{"a member is removed", `{"a":null,"b":2}`, `{"b":2}`, `[{"op":"remove","path":"/a"}]`},
		{"a member of a member", `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, `[{"op":"replace","path":"/a/c","value":3}]`},
		{"names with signs of a pointer", `{"a/b":1,"~1":1,"":1,"é\"":1}`, `{"a/b":2,"~1":2,"":2,"é\"":2}`,
			`[{"op":"replace","path":"/","value":2},{"op":"replace","path":"/a~1b","value":2},{"op":"replace","path":"/~01","value":2},{"op":"replace","path":"/é\"","value":2}]`},
		{"an item is added at the end", `{"a":[1]}`, `{"a":[1,2]}`, `[{"op":"add","path":"/a/1","value":2}]`},
		{"items are added first", `{"long name":["one","two","three","four","five"]}`, `{"long name":["zero","one","two","three","four","five"]}`, `[{"op":"add","path":"/long name/0","value":"zero"}]`},
		{"an item is removed in the middle", `["one","two","three","four","five"]`, `["one","two","four","five"]`, `[{"op":"remove","path":"/2"}]`},
		{"an equal item beside equal ones", `["one one","two two","two two"]`, `["one one","two two","two two","two two"]`, `[{"op":"add","path":"/3","value":"two two"}]`},
		{"a member of an item", `[{"n":1,"s":"a text that stays"},{"n":2,"s":"another text"}]`, `[{"n":1,"s":"a text that stays"},{"n":3,"s":"another text"}]`, `[{"op":"replace","path":"/1/n","value":3}]`},
		{"all items are removed", `{"a":[1,2,3]}`, `{"a":[]}`, `[{"op":"replace","path":"/a","value":[]}]`},
		{"all items change", `{"a":[1,2,3]}`, `{"a":[4,5,6]}`, `[{"op":"replace","path":"/a","value":[4,5,6]}]`},
		{"an array becomes an object", `{"a":[1]}`, `{"a":{"b":1}}`, `[{"op":"replace","path":"/a","value":{"b":1}}]`},
		{"a text becomes null", `{"a":"b"}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		{"another kind of document", `[1]`, `{}`, `[{"op":"add","path":"","value":{}}]`},
		{"another number as the document", `1`, `2`, `[{"op":"add","path":"","value":2}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := diff(jsontext.Value(tt.from), jsontext.Value(tt.to))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// A patch changes each document into each other one, and needs no replacement of the whole
// document for that.
func TestPatchesMakeTheNewDocument(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		from := canonical(r, drawObject(r, 3))
		to := canonical(r, drawObject(r, 3))
		for range rapid.IntRange(0, 3).Draw(r, "copies") { // documents with equal parts
			from = canonical(r, fmt.Sprintf(`{"a":%s,"b":[%s,%s,1]}`, from, from, to))
			to = canonical(r, fmt.Sprintf(`{"a":%s,"b":[%s,%s]}`, from, to, to))
		}
		patch, err := changes(from, to)
		if err != nil {
			r.Fatal(err)
		}
		if strings.Contains(string(patch), `"path":""`) {
			r.Fatalf("from %s to %s: %s replaces the document", from, to, patch)
		}
		after, err := projection.ApplyPatch(from, patch)
		if err != nil {
			r.Fatalf("from %s to %s: %s: %v", from, to, patch, err)
		}
		if got := canonical(r, string(after)); !bytes.Equal(got, to) {
			r.Fatalf("from %s to %s: %s gives %s", from, to, patch, got)
		}
		if same, err := diff(from, to); err != nil || !bytes.Equal(same, patch) {
			r.Fatalf("from %s to %s: diff gives %s, %v, want %s", from, to, same, err, patch)
		}
	})
}

func drawObject(r *rapid.T, depth int) string {
	members := map[string]string{}
	var b strings.Builder
	for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{`a`, `b`, `0`, `-`, ``, `a/b`, `~0`, `é\n`}), 0, 5).Draw(r, "names") {
		if _, ok := members[name]; ok {
			continue
		}
		members[name] = drawValue(r, depth-1)
		fmt.Fprintf(&b, `,"%s":%s`, name, members[name])
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func drawValue(r *rapid.T, depth int) string {
	kinds := []string{`1`, `1.0`, `2`, `null`, `"text"`, `""`, `true`, `{}`, `[]`}
	if depth > 0 {
		kinds = append(kinds, "object", "array", "array")
	}
	switch kind := rapid.SampledFrom(kinds).Draw(r, "value"); kind {
	case "object":
		return drawObject(r, depth)
	case "array":
		var items []string
		for range rapid.IntRange(0, 6).Draw(r, "items") {
			items = append(items, drawValue(r, depth-1))
		}
		return "[" + strings.Join(items, ",") + "]"
	default:
		return kind
	}
}

// A patch that takes too long to apply replaces the document.
func TestAPatchOfManySteps(t *testing.T) {
	const n = 40_000
	var from, to strings.Builder
	for i := range n {
		fmt.Fprintf(&from, `,{"number":%d,"text":"a text that is longer than the operation that replaces the number of it"}`, i)
		fmt.Fprintf(&to, `,{"number":%d,"text":"a text that is longer than the operation that replaces the number of it"}`, i+1)
	}
	before, after := jsontext.Value("["+from.String()[1:]+"]"), jsontext.Value("["+to.String()[1:]+"]")
	patch, err := diff(before, after)
	if err != nil || !bytes.Equal(patch, replacement(after)) {
		t.Errorf("got a patch of %d bytes, %v; want the new document", len(patch), err)
	}
}
