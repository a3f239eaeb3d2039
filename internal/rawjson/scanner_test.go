package rawjson

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// spacedTexts are texts with white space. sure is the result of a scanner that allows
// white space.
var spacedTexts = []struct {
	text string
	sure bool
}{
	{`{"a":1,"b":[1,2,{"c":"x"}]}`, true},
	{" { \"a\" : 1 ,\r\n\t\"b\" : [ 1 , 2 ] , \"c\" : { } , \"d\" : [ ] } \n", true},
	{`["a b", "c", {"d": null}]`, true},
	{"[\n  \"\\n and é\",\n  true\n]", true},
	{"[\n\"tab\there\"]", false},
	{"[\n\"\xff\"]", false},
	{"[\f1]", false},
	{"[\v1]", false},
	{"{\"a\" \"b\"}", false},
	{"{\"a\":1 \"b\":2}", false},
	{"[1 2]", false},
	{"[1, ]", false},
	{"{ , }", false},
	{"{\"a\": 1, \"a\" : 2}", false},
	{" ", false},
	{"", false},
	{"[1] [2]", false},
	{"[1] x", false},
}

func TestSpaces(t *testing.T) {
	for _, test := range spacedTexts {
		if sure := isValue([]byte(test.text)); sure != test.sure {
			t.Errorf("%q: sure %v", test.text, sure)
		}
		compare(t, []byte(test.text))
	}
	if IsCompact([]byte(`[1, 2]`)) {
		t.Error("the scanner accepts white space without allowSpace")
	}
}

func TestFirst(t *testing.T) {
	s := scanner{allowSpace: true}
	for text, want := range map[string]string{
		`{"a":1}`:              `{"a":1}`,
		"{\"a\":1}\n{\"b\":2}": `{"a":1}`,
		`[1, 2] and more`:      `[1, 2]`,
		"[1]\xff":              `[1]`,
		`"x"`:                  ``,
		` {"a":1}`:             ``,
		`{"a":1`:               ``,
		"[\"\x01\"]":           ``,
	} {
		got, sure := s.first([]byte(text))
		if string(got) != want && sure || sure != (want != "") {
			t.Errorf("%q: %q, sure %v", text, got, sure)
		}
	}
}

func TestNamesAndValues(t *testing.T) {
	s := scanner{allowSpace: true}
	text := []byte(`{"a" : [1, 2] ,"b":{"c":{}}, "": "x"}`)
	var got []string
	if !s.splitObject(text, func(name, value span) {
		got = append(got, string(text[name.from:name.to])+"="+string(text[value.from:value.to]))
	}) {
		t.Fatal("not sure")
	}
	if want := []string{`a=[1, 2]`, `b={"c":{}}`, `="x"`}; !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
	if s.splitObject([]byte(`[1]`), func(span, span) {}) {
		t.Error("splitObject accepts an array")
	}
}

// Names are compared after their escapes are decoded, in an object of any number of members.
func TestRepeatedNames(t *testing.T) {
	for _, n := range []int{1, fewNames - 1, fewNames, fewNames + 1, 40 * fewNames} {
		var others strings.Builder
		for i := range n {
			fmt.Fprintf(&others, `"%d":{"a\n":1,"n":{}},`, n-i)
		}
		for last, want := range map[string]bool{
			`"0":1`: true, `"\u0030":1`: true, `"\u0030x":1`: true, `"1":1`: false, `"\u0031":1`: false,
			`"0":{"b":1,"b":2}`: false, `"0":{"b":1,"\u0062":2}`: false,
		} {
			text := []byte("{" + others.String() + last + "}")
			compare(t, text)
			if isValue(text) != want || IsCompact(text) != want {
				t.Errorf("%d members and %s: valid %v", n, last, isValue(text))
			}
			members, err := Members(text)
			if (err == nil) != want || want && !bytes.Equal(Object(members), text) {
				t.Errorf("%d members and %s: %d members, %v", n, last, len(members), err)
			}
		}
	}
}

func TestUnquote(t *testing.T) {
	var s splitter
	for text, want := range map[string]string{
		`""`:                          "",
		`"plain"`:                     "plain",
		`"\"\\\/\b\f\n\r\t"`:          "\"\\/\b\f\n\r\t",
		`"a\u0041\u00e9\u20acz"`:      "aAé€z",
		`"\ud83d\ude42 \uD83D\uDE42"`: "🙂 🙂",
		`"é\né"`:                      "é\né",
	} {
		if got, sure := s.unquote([]byte(text)); got != want || !sure {
			t.Errorf("%s is %q, sure %v, want %q", text, got, sure, want)
		}
	}
	for _, text := range []string{``, `x`, `"`, `"a`, `"a"b`, ` "a"`, `"a" `, `"\x"`, `"\ud83d"`, "\"\x01\"", "\"\xff\"", `{}`} {
		if got, sure := s.unquote([]byte(text)); sure {
			t.Errorf("unquote accepts %q as %q", text, got)
		}
	}
}

// compare checks the results of the scanner against a decoder.
func compare(t *testing.T, text []byte) {
	t.Helper()
	loose := scanner{allowSpace: true}
	if IsCompact(text) && !isValue(text) {
		t.Errorf("%q: accepted only without allowSpace", text)
	}
	if isValue(text) && !jsontext.Value(text).IsValid() {
		t.Errorf("the scanner accepts invalid %q", text)
	}
	if again, err := Compact(text); IsCompact(text) && (err != nil || !bytes.Equal(again, text)) {
		t.Errorf("the scanner accepts %q, which is not compact: %s, %v", text, again, err)
	}
	if value, sure := loose.first(text); sure {
		want, err := jsontext.NewDecoder(bytes.NewBuffer(bytes.Clone(text))).ReadValue()
		if err != nil || !bytes.Equal(value, want) {
			t.Errorf("first(%q) is %q, want %q: %v", text, value, want, err)
		}
	}
	if got, sure := (&splitter{scanner: loose}).unquote(text); sure {
		want, err := jsontext.AppendUnquote(nil, text)
		if err != nil || got != string(want) {
			t.Errorf("unquote(%q) is %q, want %q: %v", text, got, want, err)
		}
	}
	var got, want [][]byte
	if loose.splitObject(text, func(name, value span) {
		got = append(got, unescapedName(text[name.from:name.to]), text[value.from:value.to])
	}) || loose.splitArray(text, func(value span) { got = append(got, text[value.from:value.to]) }) {
		d := jsontext.NewDecoder(bytes.NewBuffer(bytes.Clone(text)))
		opening, err := d.ReadToken()
		for err == nil && d.PeekKind() != '}' && d.PeekKind() != ']' {
			var v jsontext.Value
			v, err = d.ReadValue()
			if opening.Kind() == '{' && len(want)%2 == 0 && err == nil {
				v, err = jsontext.AppendUnquote(nil, v)
			}
			want = append(want, bytes.Clone(v))
		}
		if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%q is split into %q, want %q: %v", text, got, want, err)
		}
	}
}

// FuzzScan checks that the scanner accepts only valid JSON and splits it like a
// decoder.
func FuzzScan(f *testing.F) {
	for _, test := range spacedTexts {
		f.Add([]byte(test.text))
	}
	for _, test := range scanTexts {
		if len(test.text) < 1000 {
			f.Add([]byte(test.text))
		}
	}
	f.Add([]byte(`"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude42"`))
	f.Fuzz(compare)
}

// isValue reports whether the scanner accepts a value, which may have white space.
func isValue(text []byte) bool {
	return Read(text, func(c Cursor) bool { return c.value() })
}

// Each yields the elements that Elements returns, also of an array that the scanner leaves to a
// decoder, and stops when the caller stops.
func TestEach(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for _, text := range []string{`[]`, ` [ 1 , {"a": [2]}, "x" ] `, `[1,` + deep + `,{"\u0061":2},3]`} {
		want, err := Elements(jsontext.Value(text))
		if err != nil {
			t.Fatal(err)
		}
		for stop := range len(want) + 1 {
			var got []jsontext.Value
			for v := range Each(jsontext.Value(text)) {
				if len(got) == stop {
					break
				}
				got = append(got, v)
			}
			if !slices.EqualFunc(got, want[:stop], func(a, b jsontext.Value) bool { return string(a) == string(b) }) {
				t.Errorf("%s: the first %d are %s, want %s", text, stop, got, want[:stop])
			}
		}
	}
	for range Each(jsontext.Value(`{"a":1}`)) {
		t.Error("an object has elements")
	}
}
