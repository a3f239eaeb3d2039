package rawjson

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scanTexts are texts with the scanner's expected result. The scanner rejects some
// valid texts.
var scanTexts = []struct {
	text string
	sure bool
}{
	{`null`, true}, {`true`, true}, {`false`, true}, {`"x"`, true}, {`""`, true}, {`{}`, true}, {`[]`, true},
	{`0`, true}, {`-0`, true}, {`12`, true}, {`-3.25`, true}, {`1e9`, true}, {`1E+2`, true}, {`0.5e-7`, true},
	{`{"a":1,"b":[1,2,{"a":"x"}],"c":{"a":null}}`, true},
	{`"long enough to be passed in words of eight bytes, with \" and \\ and \n and é and \u00e9"`, true},
	{`["` + strings.Repeat("a", 100) + `","b"]`, true},
	{`"\/\b\f\n\r\t\u0000\u12aB"`, true},
	{`"🙂"`, true},
	{``, false}, {`nul`, false}, {`nulls`, false}, {`01`, false}, {`1.`, false}, {`.5`, false}, {`-`, false}, {`1e`, false}, {`+1`, false},
	{`"`, false}, {`"a`, false}, {`"\"`, false}, {`"\`, false}, {`"\x"`, false}, {`"\u12"`, false}, {`"\u12g4"`, false}, {"\"\\u\x10\x10\x10\x10\"", false},
	{"\"a\tb\"", false}, {"\"12345678\x1f\"", false}, {"\"\xff\"", false}, {"\"\xc3\x28\"", false}, {"\"\xed\xa0\x80\"", false},
	{`"\ud83d\ude42"`, true}, {`"\uD83D\uDE42\u0041"`, true},
	{`"\ud800"`, false}, {`"\ude42\ud83d"`, false}, {`"\ud83d\u0041"`, false}, {`"\ud83d\ud83d"`, false}, {`"\ud83d\n"`, false}, {`"\ud83d\u"`, false},
	{`{`, false}, {`{"a"}`, false}, {`{"a":}`, false}, {`{"a":1,}`, false}, {`{,}`, false}, {`{a:1}`, false}, {`{"a":1 }`, false}, {` 1`, false}, {`1 `, false},
	{`[1,]`, false}, {`[,1]`, false}, {`[1 ,2]`, false}, {`[1`, false}, {`]`, false}, {`1 2`, false}, {`{"a":1}{"a":1}`, false},
	{`{"a":1,"a":2}`, false}, {`{"a":{"b":1,"b":1}}`, false}, {`{"a":1,"b":1,"\u0061":1}`, false},
	{strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000), false},
}

func TestScan(t *testing.T) {
	for _, test := range scanTexts {
		if sure := IsCompact([]byte(test.text)); sure != test.sure {
			t.Errorf("%s: sure %v", test.text[:min(len(test.text), 80)], sure)
		}
		compare(t, []byte(test.text))
	}
}

// The scanner must accept all data in the goldens, because verifying is slow where a
// decoder must decide.
func TestScanAcceptsGoldens(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/golden/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d golden logs: %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			members, err := Members(line)
			if err != nil {
				continue // a torn tail
			}
			if data, ok := Value(members, "data"); ok && !IsCompact(data) && !bytes.Contains(data, []byte(`escaped\u0020name`)) {
				t.Errorf("the scanner rejects %s", data)
			}
		}
	}
}
