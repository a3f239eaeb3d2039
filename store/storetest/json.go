package storetest

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var jsonCases = []testCase{
	{
		name:        "kept byte for byte",
		explanation: "Data of unknown types is kept byte for byte: number literals of any size and form, escapes, member order.",
		run:         testJSONKept,
	},
	{
		name:        "metadata kept byte for byte",
		explanation: "Metadata keeps number literals, escapes and member order byte for byte.",
		run: func(t *env) {
			const metadata = `{"z":9007199254740993,"a":1E400,"f":1.0,"m":-0,"e":1e+2,"s":"\u00e9\/","deep":{"b":[0.10]}}`
			t.append(t.log(), "a", eventlog.New(), noted(1, metadata))
			t.same("metadata", metadata, string(t.read(t.log(), "a", eventlog.All())[0].Metadata))
			t.same("metadata after a reopen", metadata, string(t.read(t.reopen(), "a", eventlog.All())[0].Metadata))
		},
	},
	{
		name:        "white space",
		explanation: "White space outside strings is removed at append; inside strings it stays.",
		run: func(t *env) {
			e := newEvent("test:note", " { \"a b\" : [ 1 ,\n\t2 ] , \"c\":\" x \" } ")
			t.append(t.log(), "a", eventlog.New(), e)
			t.same("data", `{"a b":[1,2],"c":" x "}`, string(t.read(t.reopen(), "a", eventlog.All())[0].Data))
		},
	},
	{
		name:        "members of the envelope",
		explanation: "Envelope members that this version does not know are kept byte for byte, and hashed.",
		run:         testJSONExtras,
	},
	{
		name:        "invalid UTF-8",
		explanation: "Invalid UTF-8 in data or metadata is refused; nothing is replaced, nothing is written.",
		run: func(t *env) {
			t.fill(t.log(), "a", 1)
			for _, bad := range []string{"\"\xff\"", "\"a\xc3\"", "{\"\xed\xa0\x80\":1}", "\"\xf4\x90\x80\x80\""} {
				t.badJSON(bad)
			}
		},
	},
	{
		name:        "duplicate names",
		explanation: "Objects with a name twice are refused at any depth, however the name is escaped.",
		run: func(t *env) {
			t.fill(t.log(), "a", 1)
			for _, bad := range []string{`{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{"x":[{"b":1,"c":2,"b":3}]}`} {
				t.badJSON(bad)
			}
		},
	},
	{
		name:        "not JSON",
		explanation: "Data that is not one well-formed JSON value, and metadata that is not an object, are refused.",
		run:         testJSONMalformed,
	},
	{
		name:        "payloads of known types",
		explanation: "Data of a known type that has the wrong shape is refused before it can break a history.",
		run:         testJSONShapes,
	},
	{
		name:        "unknown members of known types",
		explanation: "Members of a known payload that this version does not know are kept.",
		run: func(t *env) {
			const data = `{"role":"user","x_later":[9007199254740993,1.0],"parts":[{"type":"text","text":"hi","x":{"y":-0}},{"type":"x_new","z":1E400}]}`
			t.append(t.log(), "a", eventlog.New(), newEvent(event.MessageAdded, data))
			t.same("data", data, string(t.read(t.reopen(), "a", eventlog.All())[0].Data))
		},
	},
	{
		name:        "newer payloads",
		explanation: "A newer version of a known type is refused at append with a VersionError.",
		run: func(t *env) {
			t.fill(t.log(), "a", 1)
			t.refused(event.ErrVersion, t.log(), "a", eventlog.Any(), newEvent("message_added/99", `{"role":"user"}`))
		},
	},
}

// literals are JSON values that careless readers change.
var literals = []string{
	`9007199254740993`, `-9223372036854775809`, `1E400`, `1.0`, `-0`, `-0.0`, `1e+2`, `0.10`, `123456789012345678901234567890.5`,
	`"\u00e9\/\ud83d\ude00\u0000\u2028"`, `"é😀` + "\u2028\u007f" + `"`, `{"z":1,"a":{"z":2,"b":[]}}`, `[]`, `{}`, `null`, `true`, `""`,
	`{"":0}`, `[[[[[[[[[[1]]]]]]]]]]`, `"\\\"\\"`, `{"commit":"x","digest":"y","data":{"data":1}}`,
}

func testJSONKept(t *env) {
	l := t.log()
	for _, data := range literals {
		t.append(l, "a", eventlog.Any(), newEvent("test:note", data))
	}
	t.twice(func(l *eventlog.Log) {
		events := t.read(l, "a", eventlog.All())
		for i, want := range literals {
			t.same("data", want, string(events[i].Data))
		}
		t.sound(l, "a")
	})
}

func testJSONExtras(t *env) {
	e := noted(1, `{"k":1}`)
	t.must(e.SetExtras(jsontext.Value(`{"x_trace":{"n":9007199254740993},"a":[1.0]}`)))
	t.append(t.log(), "a", eventlog.New(), e, note(2))
	t.refused(eventlog.ErrConflict, t.log(), "a", eventlog.New(), noted(1, `{"k":1}`))
	got := t.read(t.reopen(), "a", eventlog.All())
	t.same("extras", `"x_trace":{"n":9007199254740993},"a":[1.0]`, string(got[0].Extras()))
	t.sound(t.log(), "a")
}

// badJSON makes sure that a value is refused as data and inside metadata.
func (t *env) badJSON(bad string) {
	t.Helper()
	t.refused(event.ErrInvalidData, t.log(), "a", eventlog.Any(), newEvent("test:note", bad))
	t.refused(event.ErrInvalid, t.log(), "a", eventlog.Any(), newEvent(event.MessageAdded, bad))
	t.refused(event.ErrInvalidMetadata, t.log(), "a", eventlog.Any(), noted(1, `{"k":`+bad+`}`))
	t.refused(event.ErrInvalidData, t.log(), "a", eventlog.Any().Lenient(), newEvent("test:note", bad))
}

func testJSONMalformed(t *env) {
	t.fill(t.log(), "a", 1)
	for _, bad := range []string{"", " ", "{", "1 2", `{"a":1,}`, "NaN", "01", "'a'", `"\x41"`, "\"a\nb\"", "\ufeff1"} {
		t.refused(event.ErrInvalidData, t.log(), "a", eventlog.Any(), newEvent("test:note", bad))
	}
	for _, bad := range []string{"1", "[]", "null", `"a"`, "{", "{} {}"} {
		t.refused(event.ErrInvalidMetadata, t.log(), "a", eventlog.Any(), noted(1, bad))
	}
}

func testJSONShapes(t *env) {
	t.fill(t.log(), "a", 1)
	for _, bad := range []event.Event{
		newEvent(event.MessageAdded, `[]`),
		newEvent(event.MessageAdded, `"text"`),
		newEvent(event.MessageAdded, `{"role":5}`),
		newEvent(event.MessageAdded, `{"role":"user","parts":{}}`),
		newEvent(event.MessageAdded, `{"role":"robot","parts":[]}`),
		newEvent(event.MessageAdded, `{"role":"assistant","parts":[]}`),
		newEvent(event.MessageAdded, `{"role":"assistant","parts":[{"type":"tool_call","name":"x"}]}`),
		newEvent(event.ToolStarted, `{"call_id":[],"name":"x"}`),
		newEvent(event.ToolCompleted, `{"call_id":"c","content":"text"}`),
		newEvent(event.HeadMoved, `{"to":"1"}`),
		newEvent(event.TurnStarted, `7`),
		newEvent(event.SessionForked, `{}`),
	} {
		t.refused(event.ErrInvalid, t.log(), "a", eventlog.Any(), bad)
	}
	t.refused(event.ErrInvalidRole, t.log(), "a", eventlog.Any(), newEvent(event.MessageAdded, `{"role":"robot","parts":[]}`))
	t.refused(event.ErrInvalidPayload, t.log(), "a", eventlog.Any(), newEvent(event.MessageAdded, `[]`))
	t.refused(event.ErrInvalidMessage, t.log(), "a", eventlog.Any(), newEvent(event.MessageAdded, `{"role":"assistant","parts":[]}`))
}
