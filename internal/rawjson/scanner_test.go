package rawjson

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// spaced are texts with white space, and whether a scanner that lets it stand must
// be sure of them.
var spaced = []struct {
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
	for _, test := range spaced {
		loose := Scanner{Spaces: true}
		if sure := loose.Sound([]byte(test.text)); sure != test.sure {
			t.Errorf("%q: sure %v", test.text, sure)
		}
		compare(t, []byte(test.text))
	}
	var strict Scanner
	if strict.Sound([]byte(`[1, 2]`)) {
		t.Error("white space was not let stand")
	}
}

func TestFirst(t *testing.T) {
	s := Scanner{Spaces: true}
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
		got, sure := s.First([]byte(text))
		if string(got) != want && sure || sure != (want != "") {
			t.Errorf("%q: %q, sure %v", text, got, sure)
		}
	}
}

func TestNamesAndValues(t *testing.T) {
	s := Scanner{Spaces: true}
	text := []byte(`{"a" : [1, 2] ,"b":{"c":{}}, "": "x"}`)
	var got []string
	if !s.Members(text, func(name, value Span) {
		got = append(got, string(text[name.From:name.To])+"="+string(text[value.From:value.To]))
	}) {
		t.Fatal("not sure")
	}
	if want := []string{`a=[1, 2]`, `b={"c":{}}`, `="x"`}; !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
	if s.Members([]byte(`{"\u0061":1}`), func(Span, Span) {}) || s.Members([]byte(`[1]`), func(Span, Span) {}) {
		t.Error("sure of an escaped name, or of an array")
	}
	many := "{"
	for i := range 2 * maxNames {
		many += `"` + strings.Repeat("n", i+1) + `":1,`
	}
	if s.Members([]byte(many[:len(many)-1]+"}"), func(Span, Span) {}) {
		t.Error("sure of names that were not compared")
	}
}

func TestUnquote(t *testing.T) {
	var s Scanner
	for text, want := range map[string]string{
		`""`:                          "",
		`"plain"`:                     "plain",
		`"\"\\\/\b\f\n\r\t"`:          "\"\\/\b\f\n\r\t",
		`"a\u0041\u00e9\u20acz"`:      "aAé€z",
		`"\ud83d\ude42 \uD83D\uDE42"`: "🙂 🙂",
		`"é\né"`:                      "é\né",
	} {
		if got, sure := s.Unquote([]byte(text)); got != want || !sure {
			t.Errorf("%s is %q, sure %v, want %q", text, got, sure, want)
		}
	}
	for _, text := range []string{``, `x`, `"`, `"a`, `"a"b`, ` "a"`, `"a" `, `"\x"`, `"\ud83d"`, "\"\x01\"", "\"\xff\"", `{}`} {
		if got, sure := s.Unquote([]byte(text)); sure {
			t.Errorf("sure that %q is %q", text, got)
		}
	}
}

// compare makes sure that a decoder agrees where a scanner is sure.
func compare(t *testing.T, text []byte) {
	t.Helper()
	strict, loose := Scanner{}, Scanner{Spaces: true}
	if strict.Sound(text) && !loose.Sound(text) {
		t.Errorf("%q: sure only without white space", text)
	}
	if loose.Sound(text) && !jsontext.Value(text).IsValid() {
		t.Errorf("sure of %q", text)
	}
	if again, err := Compact(text); strict.Sound(text) && (err != nil || !bytes.Equal(again, text)) {
		t.Errorf("sure of %q, which is not compact: %s, %v", text, again, err)
	}
	if value, sure := loose.First(text); sure {
		want, err := jsontext.NewDecoder(bytes.NewBuffer(bytes.Clone(text))).ReadValue()
		if err != nil || !bytes.Equal(value, want) {
			t.Errorf("%q begins with %q, not %q: %v", text, value, want, err)
		}
	}
	if got, sure := loose.Unquote(text); sure {
		want, err := jsontext.AppendUnquote(nil, text)
		if err != nil || got != string(want) {
			t.Errorf("%q is %q, not %q: %v", text, got, want, err)
		}
	}
	var got, want [][]byte
	if loose.Members(text, func(name, value Span) {
		got = append(got, text[name.From:name.To], text[value.From:value.To])
	}) || loose.Elements(text, func(value Span) { got = append(got, text[value.From:value.To]) }) {
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
			t.Errorf("%q was split into %q, not %q: %v", text, got, want, err)
		}
	}
}

// FuzzScan: a scanner is never sure of what a decoder refuses, and splits as one does.
func FuzzScan(f *testing.F) {
	for _, test := range spaced {
		f.Add([]byte(test.text))
	}
	for _, test := range scanned {
		if len(test.text) < 1000 {
			f.Add([]byte(test.text))
		}
	}
	f.Add([]byte(`"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude42"`))
	f.Fuzz(compare)
}
