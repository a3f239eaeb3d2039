package projection_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
)

// The cases of RFC 6902, with its appendix A.
func TestPatchesApply(t *testing.T) {
	for _, tt := range []struct{ name, document, patch, want string }{
		{"no operation", `{"a":1}`, `[]`, `{"a":1}`},
		{"white space goes", " { \"a\" : [ 1 , 2 ] } ", `[]`, `{"a":[1,2]}`},

		{"add a member (A.1)", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"foo":"bar","baz":"qux"}`},
		{"add an item (A.2)", `{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`, `{"foo":["bar","qux","baz"]}`},
		{"add a first item", `[1]`, `[{"op":"add","path":"/0","value":0}]`, `[0,1]`},
		{"add behind the last, by index", `[1]`, `[{"op":"add","path":"/1","value":2}]`, `[1,2]`},
		{"add behind the last (A.16)", `{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc","def"]}]`, `{"foo":["bar",["abc","def"]]}`},
		{"add to what is empty", `{"a":[],"o":{}}`, `[{"op":"add","path":"/a/-","value":1},{"op":"add","path":"/o/x","value":2}]`, `{"a":[1],"o":{"x":2}}`},
		{"add a member that is there", `{"a":1,"b":2}`, `[{"op":"add","path":"/a","value":3}]`, `{"a":3,"b":2}`},
		{"add a nested object (A.10)", `{"foo":"bar"}`, `[{"op":"add","path":"/child","value":{"grandchild":{}}}]`, `{"foo":"bar","child":{"grandchild":{}}}`},
		{"add the whole document", `{"a":1}`, `[{"op":"add","path":"","value":[1]}]`, `[1]`},
		{"unknown members of operations (A.11)", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","xyz":123}]`, `{"foo":"bar","baz":"qux"}`},
		{"a member of no name", `{}`, `[{"op":"add","path":"/","value":1}]`, `{"":1}`},
		{"a member of a name that is an index", `{}`, `[{"op":"add","path":"/0","value":1}]`, `{"0":1}`},
		{"a member of the name -", `{}`, `[{"op":"add","path":"/-","value":1}]`, `{"-":1}`},
		{"null is a value", `{"a":1}`, `[{"op":"add","path":"/a","value":null}]`, `{"a":null}`},

		{"remove a member (A.3)", `{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`},
		{"remove an item (A.4)", `{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`, `{"foo":["bar","baz"]}`},
		{"remove the whole document", `{"a":1}`, `[{"op":"remove","path":""}]`, `null`},

		{"replace a member (A.5)", `{"baz":"qux","foo":"bar"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`, `{"baz":"boo","foo":"bar"}`},
		{"replace an item", `[1,2,3]`, `[{"op":"replace","path":"/2","value":{}}]`, `[1,2,{}]`},
		{"replace the whole document", `{"a":1}`, `[{"op":"replace","path":"","value":7}]`, `7`},

		{"move a member (A.6)", `{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`,
			`[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`, `{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`},
		{"move an item (A.7)", `{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`, `{"foo":["all","cows","eat","grass"]}`},
		{"move onto itself", `{"a":1,"b":2}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1,"b":2}`},
		{"move onto what holds it", `{"a":{"b":1}}`, `[{"op":"move","from":"/a/b","path":"/a"}]`, `{"a":1}`},
		{"move to a name that begins like it", `{"a":1}`, `[{"op":"move","from":"/a","path":"/ab"}]`, `{"ab":1}`},

		{"copy a member", `{"a":{"b":1},"c":[]}`, `[{"op":"copy","from":"/a","path":"/c/-"}]`, `{"a":{"b":1},"c":[{"b":1}]}`},
		{"copy into itself", `{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/a/c"}]`, `{"a":{"b":1,"c":{"b":1}}}`},
		{"copy the whole document", `{"a":1}`, `[{"op":"copy","from":"","path":"/b"}]`, `{"a":1,"b":{"a":1}}`},
		{"a copy is its own", `{"a":{"x":1}}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/b/x","value":2}]`, `{"a":{"x":1},"b":{"x":2}}`},
		{"a copy of an array is its own", `{"a":[1]}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/b/0","value":2}]`, `{"a":[1],"b":[2]}`},

		{"test (A.8)", `{"baz":"qux","foo":["a",2,"c"]}`, `[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]`, `{"baz":"qux","foo":["a",2,"c"]}`},
		{"test of the whole document", `[1,{"a":null}]`, `[{"op":"test","path":"","value":[1,{"a":null}]}]`, `[1,{"a":null}]`},
		{"test of members in another order", `{"a":{"x":1,"y":2}}`, `[{"op":"test","path":"/a","value":{"y":2,"x":1}}]`, `{"a":{"x":1,"y":2}}`},
		{"test of a number in another form", `{"a":1e2,"b":-0.50,"c":0}`,
			`[{"op":"test","path":"/a","value":100.0},{"op":"test","path":"/b","value":-5e-1},{"op":"test","path":"/c","value":-0.0}]`, `{"a":1e2,"b":-0.50,"c":0}`},
		{"test of an escaped string", `{"a":"é"}`, `[{"op":"test","path":"/a","value":"\u00e9"}]`, `{"a":"é"}`},

		{"~0 and ~1 (A.14)", `{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":10},{"op":"replace","path":"/~1","value":8}]`, `{"/":8,"~1":10}`},
		{"names with both", `{}`, `[{"op":"add","path":"/a~1b~0c","value":1}]`, `{"a/b~c":1}`},
		{"a name with quotes", `{}`, `[{"op":"add","path":"/\"\\","value":1}]`, `{"\"\\":1}`},

		{"numbers keep their digits", `{"big":9007199254740993,"exact":1.10,"e":1E400}`, `[{"op":"copy","from":"/big","path":"/copy"},{"op":"add","path":"/x","value":12345678901234567890.0100}]`,
			`{"big":9007199254740993,"exact":1.10,"e":1E400,"copy":9007199254740993,"x":12345678901234567890.0100}`},
		{"strings keep their escapes", `{"a":"\u0041\/"}`, `[{"op":"add","path":"/b","value":"\u0042"}]`, `{"a":"\u0041\/","b":"\u0042"}`},
		{"operations see those before them", `{}`, `[{"op":"add","path":"/a","value":[]},{"op":"add","path":"/a/-","value":1},{"op":"test","path":"/a/0","value":1}]`, `{"a":[1]}`},
	} {
		before := strings.Clone(tt.document)
		got, err := projection.ApplyPatch(jsontext.Value(tt.document), jsontext.Value(tt.patch))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
		if tt.document != before {
			t.Errorf("%s: the document became %s", tt.name, tt.document)
		}
	}
}

func TestPatchesThatDoNotApply(t *testing.T) {
	document := `{"a":{"b":[1,2]},"n":9007199254740993,"s":"x"}`
	deep := strings.Repeat(`[`, 999) + strings.Repeat(`]`, 999)
	for _, tt := range []struct {
		name, patch string
		index       int
		want        error
	}{
		{"add below nothing (A.12)", `[{"op":"add","path":"/baz/bat","value":1}]`, 0, projection.ErrNoTarget},
		{"add below a text", `[{"op":"add","path":"/s/x","value":1}]`, 0, projection.ErrNoTarget},
		{"add past the end", `[{"op":"add","path":"/a/b/3","value":1}]`, 0, projection.ErrNoTarget},
		{"an index with a zero before it", `[{"op":"add","path":"/a/b/01","value":1}]`, 0, projection.ErrNoTarget},
		{"an index with a sign", `[{"op":"add","path":"/a/b/+1","value":1}]`, 0, projection.ErrNoTarget},
		{"an index below zero", `[{"op":"replace","path":"/a/b/-1","value":1}]`, 0, projection.ErrNoTarget},
		{"an index that is none", `[{"op":"add","path":"/a/b/x","value":1}]`, 0, projection.ErrNoTarget},
		{"an index beyond all numbers", `[{"op":"add","path":"/a/b/99999999999999999999","value":1}]`, 0, projection.ErrNoTarget},
		{"remove what is not there", `[{"op":"remove","path":"/x"}]`, 0, projection.ErrNoTarget},
		{"remove behind the last", `[{"op":"remove","path":"/a/b/-"}]`, 0, projection.ErrNoTarget},
		{"remove one past the end", `[{"op":"remove","path":"/a/b/2"}]`, 0, projection.ErrNoTarget},
		{"replace what is not there", `[{"op":"replace","path":"/x","value":1}]`, 0, projection.ErrNoTarget},
		{"replace behind the last", `[{"op":"replace","path":"/a/b/-","value":1}]`, 0, projection.ErrNoTarget},
		{"move what is not there", `[{"op":"move","from":"/x","path":"/y"}]`, 0, projection.ErrNoTarget},
		{"move what is not there onto itself", `[{"op":"move","from":"/x","path":"/x"}]`, 0, projection.ErrNoTarget},
		{"move to where nothing is", `[{"op":"move","from":"/s","path":"/x/y"}]`, 0, projection.ErrNoTarget},
		{"copy what is not there", `[{"op":"copy","from":"/x","path":"/y"}]`, 0, projection.ErrNoTarget},
		{"copy to where nothing is", `[{"op":"copy","from":"/s","path":"/x/y"}]`, 0, projection.ErrNoTarget},
		{"test what is not there", `[{"op":"test","path":"/x","value":1}]`, 0, projection.ErrNoTarget},
		{"test fails (A.9)", `[{"op":"test","path":"/s","value":"y"}]`, 0, projection.ErrTestFailed},
		{"a text is no number (A.15)", `[{"op":"test","path":"/n","value":"9007199254740993"}]`, 0, projection.ErrTestFailed},
		{"numbers that are one apart", `[{"op":"test","path":"/n","value":9007199254740992}]`, 0, projection.ErrTestFailed},
		{"fewer items", `[{"op":"test","path":"/a/b","value":[1]}]`, 0, projection.ErrTestFailed},
		{"fewer members", `[{"op":"test","path":"/a","value":{}}]`, 0, projection.ErrTestFailed},
		{"other members", `[{"op":"test","path":"/a","value":{"c":[1,2]}}]`, 0, projection.ErrTestFailed},
		{"the second of three", `[{"op":"add","path":"/x","value":1},{"op":"remove","path":"/y"},{"op":"remove","path":"/x"}]`, 1, projection.ErrNoTarget},
		{"a last test", `[{"op":"remove","path":"/a"},{"op":"test","path":"/s","value":1}]`, 1, projection.ErrTestFailed},

		{"move into itself", `[{"op":"move","from":"/a","path":"/a/b/0"}]`, 0, projection.ErrInvalidPatch},
		{"move all into itself", `[{"op":"move","from":"","path":"/x"}]`, 0, projection.ErrInvalidPatch},
		{"no path", `[{"op":"add","value":1}]`, 0, projection.ErrInvalidPatch},
		{"no from", `[{"op":"move","path":"/s"}]`, 0, projection.ErrInvalidPatch},
		{"no value", `[{"op":"add","path":"/x"}]`, 0, projection.ErrInvalidPatch},
		{"no operation", `[{"path":"/x","value":1}]`, 0, projection.ErrInvalidPatch},
		{"an unknown operation", `[{"op":"merge","path":"/x","value":1}]`, 0, projection.ErrInvalidPatch},
		{"an unknown operation without a value", `[{"op":"drop","path":"/x"}]`, 0, projection.ErrInvalidPatch},
		{"no pointer", `[{"op":"remove","path":"s"}]`, 0, projection.ErrInvalidPatch},
		{"a pointer that escapes nothing", `[{"op":"remove","path":"/s~2"}]`, 0, projection.ErrInvalidPatch},
		{"a pointer that ends in an escape", `[{"op":"remove","path":"/s~"}]`, 0, projection.ErrInvalidPatch},
		{"no array", `{"op":"remove","path":"/s"}`, -1, projection.ErrInvalidPatch},
		{"a repeated member (A.13)", `[{"op":"add","path":"/x","value":1,"op":"remove"}]`, -1, projection.ErrInvalidPatch},
		{"no JSON", `[{`, -1, projection.ErrInvalidPatch},
		{"nothing", ``, -1, projection.ErrInvalidPatch},
		{"too deep", `[{"op":"add","path":"/a/b/0","value":` + deep + `}]`, 0, projection.ErrDocumentTooLarge},
		{"too large", `[{"op":"add","path":"/s","value":["` + strings.Repeat("x", 1<<16) + `"]}` + strings.Repeat(`,{"op":"copy","from":"/s","path":"/s/-"}`, 12) + `]`, 10, projection.ErrDocumentTooLarge},
	} {
		got, err := projection.ApplyPatch(jsontext.Value(document), jsontext.Value(tt.patch))
		var where *projection.PatchError
		if !errors.As(err, &where) || !errors.Is(err, tt.want) || where.Index != tt.index || got != nil {
			t.Errorf("%s: %v, want %v at %d; gave %.60s", tt.name, err, tt.want, tt.index, got)
		}
	}
}

func TestAPatchOfNoDocument(t *testing.T) {
	for _, document := range []string{``, `{`, `{"a":1,"a":2}`, `{} {}`, `1 2`, `nil`} {
		var where *projection.PatchError
		if got, err := projection.ApplyPatch(jsontext.Value(document), jsontext.Value(`[]`)); !errors.As(err, &where) || where.Index != -1 {
			t.Errorf("%q: %s, %v", document, got, err)
		}
	}
}

// A patch that does not apply to the state of a session is an error, and
// nothing is written.
func TestAPatchThatDoesNotApplyIsNotWritten(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		g := &garden.Garden{T: t, Log: log}
		g.Append("s", event.UserMessage("hello"))
		_, _, err := projection.SetState(garden.Bg, log, "s", "cart", 1, map[string]int{"n": 1})
		g.Allow(err)
		before := g.Head("s")
		for patch, want := range map[string]error{
			`[{"op":"replace","path":"/n","value":2},{"op":"test","path":"/n","value":3}]`: projection.ErrTestFailed,
			`[{"op":"remove","path":"/m"}]`: projection.ErrNoTarget,
			`[{"op":"merge","path":""}]`:    event.ErrInvalidPayload,
		} {
			_, _, err := projection.Patch(garden.Bg, log, "s", event.CustomPatch{Name: "cart", Patch: jsontext.Value(patch)})
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", patch, err, want)
			}
		}
		garden.Same(t, "head", before, g.Head("s"))
		view, err := projection.Load(garden.Bg, log, "s", projection.Custom())
		g.Allow(err)
		garden.Same(t, "state", `{"n":1}`, string(view.State.Get("cart").Raw()))
		if _, _, err := projection.Patch(garden.Bg, log, "none", event.CustomPatch{Patch: []byte(`[]`)}); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("a missing session: %v", err)
		}
	})
}

// A stored patch that does not apply changes only the list of refused patches. Later
// events fold as usual.
func TestAStoredPatchThatDoesNotApply(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		g := &garden.Garden{T: t, Log: log}
		g.Append("s", event.UserMessage("hello"))
		store := func(patch string) {
			g.Append("s", event.New(event.CustomPatch{StateVersion: 3, Patch: []byte(patch)}))
		}
		store(`[{"op":"add","path":"/x","value":1}]`) // 2, to null
		_, _, err := projection.SetState(garden.Bg, log, "s", "", 1, map[string]int{"n": 1})
		g.Allow(err)
		store(`[{"op":"replace","path":"/n","value":2},{"op":"remove","path":"/x"}]`) // 4
		g.Snapshot("s", projection.Session(), true)
		store(`[{"op":"test","path":"/n","value":9}]`) // 6
		store(`[{"op":"add","path":"/x","value":1},{"op":"add","path":"/y/z","value":1}]`)
		live, err := projection.Resume(garden.Bg, log, "s", projection.Session())
		g.Allow(err)
		for range 40 {
			store(`[{"op":"copy","from":"/m","path":"/n"}]`)
		}
		g.Allow(live.Follow(garden.Bg))
		for _, o := range []projection.Options{{}, {Replay: true}, {At: 7}, {At: 7, Replay: true}} {
			loaded, err := projection.LoadSet(garden.Bg, log, "s", projection.Session(), o)
			g.Allow(err)
			state, _ := projection.State(loaded, projection.Custom())
			c := state.Get("")
			garden.Same(t, "state", `{"n":1}`, string(c.Raw()))
			if o.At == 7 {
				garden.Same(t, "refused", []projection.PatchError{
					{Seq: 4, Index: 1, Op: "remove", Path: "/x", Reason: projection.ErrNoTarget.Error()},
					{Seq: 6, Index: 0, Op: "test", Path: "/n", Reason: projection.ErrTestFailed.Error()},
					{Seq: 7, Index: 1, Op: "add", Path: "/y/z", Reason: projection.ErrNoTarget.Error()},
				}, c.Refused)
				continue
			}
			followed, _ := projection.State(live, projection.Custom())
			garden.Same(t, "refused in a Live", c.Refused, followed.Get("").Refused)
			if c.Version != 1 || c.Incomplete || c.Skipped != 43 || len(c.Refused) != 32 || c.Refused[31].Seq != 47 {
				t.Errorf("%+v", c)
			}
		}
		c, _, err := projection.Patch(garden.Bg, log, "s", event.CustomPatch{Patch: []byte(`[{"op":"add","path":"/m","value":2}]`)})
		g.Allow(err)
		garden.Same(t, "after a patch", `{"n":1,"m":2}`, string(c.Raw()))
		c, _, err = projection.SetState(garden.Bg, log, "s", "", 1, 5)
		g.Allow(err)
		if c.Skipped != 0 || c.Refused != nil || string(c.Raw()) != "5" {
			t.Errorf("set anew: %+v", c)
		}
	})
}

// The size and the depth of a document are right after any additions, replacements
// and removals.
func TestDocumentsAreMeasured(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		path := rapid.SampledFrom([]string{"/a", "/a/a", "/b", "/l/0", "/l/-", "/l", "/l/0/a", "/é\"", ""})
		value := rapid.SampledFrom([]string{`1`, `{}`, `[]`, `{"a":{"b":[[]]}}`, `[[[1,2]],3]`, `"text"`})
		document := jsontext.Value(`{"a":{"a":1},"l":[[1],{"a":[]}]}`)
		for range rapid.IntRange(1, 20).Draw(r, "patches") {
			op := rapid.SampledFrom([]string{"add", "replace", "remove", "copy", "move"}).Draw(r, "op")
			patch := fmt.Sprintf(`[{"op":%q,"path":%s,"from":%s,"value":%s}]`, op, quoted(path.Draw(r, "path")), quoted(path.Draw(r, "from")), value.Draw(r, "value"))
			known, real, err := projection.Measured(document, jsontext.Value(patch))
			if err != nil {
				continue
			}
			if known != real {
				r.Fatalf("%s of %s: size and depth are %v, not %v", patch, document, real, known)
			}
			document, err = projection.ApplyPatch(document, jsontext.Value(patch))
			if err != nil {
				r.Fatal(err)
			}
		}
	})
}

func quoted(text string) string {
	b, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// A small patch cannot use much time: comparing objects takes linear time, and a
// patch with too many steps is refused.
func TestPatchesAreBounded(t *testing.T) {
	members := make([]string, 30_000)
	for i := range members {
		members[i] = fmt.Sprintf(`"m%d":%d`, i, i)
	}
	object := "{" + strings.Join(members, ",") + "}"
	slices.Reverse(members)
	reversed := "{" + strings.Join(members, ",") + "}"
	patch := `[{"op":"test","path":"","value":` + reversed + `}]`
	if got, err := projection.ApplyPatch(jsontext.Value(object), jsontext.Value(patch)); err != nil || string(got) != object {
		t.Errorf("a test of an equal object: %v", err)
	}
	if testsize.Of() != testsize.Long {
		return
	}
	items := `[` + strings.Repeat("0,", 1<<20) + `0]`
	patch = `[` + strings.Repeat(`{"op":"add","path":"/0","value":1},`, 300) + `{"op":"remove","path":"/0"}]`
	var where *projection.PatchError
	if _, err := projection.ApplyPatch(jsontext.Value(items), jsontext.Value(patch)); !errors.Is(err, projection.ErrDocumentTooLarge) || !errors.As(err, &where) || where.Index != 255 {
		t.Errorf("300 insertions into a million items: %v", err)
	}
}
