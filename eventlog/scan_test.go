package eventlog

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// scanned are texts, and whether the scanner must be sure of them. Of those it
// must not be sure of, some are right all the same.
var scanned = []struct {
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
	var s rawjson.Scanner
	for _, test := range scanned {
		if sure := s.Sound([]byte(test.text)); sure != test.sure {
			t.Errorf("%s: sure %v", clip(test.text), sure)
		}
		compareScan(t, []byte(test.text))
	}
}

// compareScan makes sure that a decoder agrees where the scanner is sure.
func compareScan(t *testing.T, text []byte) {
	t.Helper()
	var s rawjson.Scanner
	if s.Sound(text) {
		if err := checkData(text); err != nil {
			t.Errorf("the scanner is sure of %q: %v", text, err)
		}
	}
	if len(text) > 2 && text[0] == '{' && s.SoundMembers(text[1:len(text)-1]) && text[len(text)-1] == '}' {
		if err := checkJSON(text, errMetaForm); err != nil {
			t.Errorf("the scanner is sure of the members of %q: %v", text, err)
		}
	}
	var f facts
	if !scanMessage(&s, text, &f) {
		return
	}
	if err := checkData(text); err != nil {
		t.Errorf("the scanner is sure of the message %q: %v", text, err)
		return
	}
	p, err := vocabulary[MessageAdded].parse(MessageAdded, jsontext.Value(text))
	if err != nil || p.check() != nil || len(p.needs()) > 0 {
		t.Errorf("the scanner is sure of the message %q: %v %v %v", text, err, p.check(), p.needs())
		return
	}
	want := factsOf(p, text)
	if !slices.Equal(f.calls, want.calls) || !slices.Equal(f.results, want.results) {
		t.Errorf("the scanner finds calls %q and results %q in %q", f.calls, f.results, text)
	}
}

// messages are payloads, and whether the scanner must be sure of them.
var messages = []struct {
	text string
	sure bool
}{
	{`{"role":"user","parts":[{"type":"text","text":"hello"}]}`, true},
	{`{"role":"user"}`, true},
	{`{"role":"assistant","provider":"p","model":"m","response_id":"r","stop_reason":"s","group":"g","usage":{"input_tokens":12,"output_tokens":0,"cache_read_tokens":1,"cache_write_tokens":2,"reasoning_tokens":3,"extra":{"a":[1]}},"parts":[{"type":"reasoning","text":"so","signature":"x"},{"type":"text","text":"a\nb"},{"type":"tool_call","id":"i","call_id":"c1","name":"n","arguments":{"a":{"b":1}}},{"type":"server_tool_call","call_id":"c2","name":"n","arguments":null}],"extra":{"x":null}}`, true},
	{`{"role":"tool","parts":[{"type":"tool_result","call_id":"c1","name":"n","content":[{"type":"text","text":"x"},{"type":"opaque","kind":"k","value":7}],"is_error":true,"interrupted":false}]}`, true},
	{`{"role":"assistant","parts":[{"type":"reasoning","redacted":true}]}`, true},
	{`{"role":"assistant","parts":[{"type":"opaque","kind":"k"}]}`, true},
	{`{"role":"assistant","parts":[{"type":"text","text":"","extra":{}}]}`, true},

	{`{}`, false},
	{`[]`, false},
	{`null`, false},
	{`{"role":"robot"}`, false},
	{`{"role":7}`, false},
	{`{"role":"assistant"}`, false},
	{`{"role":"assistant","parts":[]}`, false},
	{`{"role":"assistant","parts":[{"type":"text"}]}`, false},
	{`{"role":"assistant","parts":[{"type":"text","text":"","signature":"x"}]}`, false},
	{`{"role":"assistant","parts":[{"type":"reasoning","redacted":false}]}`, false},
	{`{"role":"tool","parts":[{"type":"text","text":"x"}]}`, false},
	{`{"role":"tool","parts":[{"type":"tool_result","name":"n"}]}`, false},
	{`{"role":"tool","parts":[{"type":"tool_result","call_id":""}]}`, false},
	{`{"role":"tool","parts":[{"type":"tool_result","call_id":"c"},{"type":"tool_result","call_id":"c"}]}`, false},
	{`{"role":"user","parts":[{"type":"tool_result","call_id":"c","content":[{"type":"tool_call"}]}]}`, false},
	{`{"role":"assistant","parts":[{"type":"tool_call","call_id":"c","name":"n"},{"type":"tool_call","call_id":"c","name":"n"}]}`, false},
	{`{"role":"assistant","parts":[{"type":"tool_call","call_id":"c"}]}`, false},
	{`{"role":"assistant","parts":[{"type":"tool_call","name":"n"}]}`, false},
	{`{"role":"assistant","parts":[{"type":"opaque"}]}`, false},
	{`{"role":"user","parts":[{"type":"image","url":"u"}]}`, false},
	{`{"role":"user","parts":[{"type":"text","blob":{"blob":"sha256:","bytes":1}}]}`, false},
	{`{"role":"user","parts":[{"type":"new kind"}]}`, false},
	{`{"role":"user","parts":[{"text":"x","type":"text"}]}`, false},
	{`{"role":"user","parts":[{"type":"text","text":7}]}`, false},
	{`{"role":"user","parts":[{"type":"text","text":"x","text":"y"}]}`, false},
	{`{"role":"user","parts":{}}`, false},
	{`{"role":"user","extra":[]}`, false},
	{`{"role":"user","usage":{"input_tokens":-1}}`, false},
	{`{"role":"user","usage":{"input_tokens":1.5}}`, false},
	{`{"role":"user","usage":{"input_tokens":99999999999999999999}}`, false},
	{`{"role":"user","model":null}`, false},
	{`{"role":"user","role":"user"}`, false},
	{`{"role":"user","unknown":1}`, false},
}

func TestScanMessage(t *testing.T) {
	var s rawjson.Scanner
	for _, test := range messages {
		if sure := scanMessage(&s, []byte(test.text), new(facts)); sure != test.sure {
			t.Errorf("%s: sure %v", test.text, sure)
		}
		compareScan(t, []byte(test.text))
	}
}

// Where the scanner gives up, verifying is slow: it must be sure of what the
// goldens hold.
func TestScanIsSureOfGoldens(t *testing.T) {
	var s rawjson.Scanner
	messages := 0
	for e := range goldenEvents(t) {
		if !s.Sound(e.Data) && !bytes.Contains(e.Data, []byte(`escaped\u0020name`)) {
			t.Errorf("not sure of %s", e.Data)
		}
		if scanMessage(&s, e.Data, new(facts)) {
			messages++
		}
		compareScan(t, e.Data)
	}
	if messages < 10 {
		t.Errorf("sure of %d messages only", messages)
	}
}

// FuzzScan: the scanner is never sure of what a decoder refuses.
func FuzzScan(f *testing.F) {
	for _, test := range scanned {
		if len(test.text) < 1000 {
			f.Add([]byte(test.text))
		}
	}
	for _, test := range messages {
		f.Add([]byte(test.text))
	}
	f.Fuzz(compareScan)
}
