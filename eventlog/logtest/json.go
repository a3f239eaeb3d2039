package logtest

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var jsonCases = []testCase{
	{
		Name:        "data byte for byte",
		Explanation: "Data of unknown types is stored byte for byte: number literals of any size and form, escapes, member order.",
		Run:         testJSONKept,
	},
	{
		Name:        "metadata byte for byte",
		Explanation: "Metadata keeps number literals, escapes and member order byte for byte.",
		Run: func(t *env) {
			const metadata = `{"z":9007199254740993,"a":1E400,"f":1.0,"m":-0,"e":1e+2,"s":"\u00e9\/","deep":{"b":[0.10]}}`
			t.Append(t.Main(), "a", eventlog.New(), suite.NoteWithMetadata(1, metadata))
			t.WantEqual("metadata", metadata, string(t.Read(t.Main(), "a", eventlog.All())[0].Metadata))
			t.WantEqual("metadata after a reopen", metadata, string(t.Read(t.Reopen(), "a", eventlog.All())[0].Metadata))
		},
	},
	{
		Name:        "white space",
		Explanation: "Append removes white space outside strings. White space inside strings stays.",
		Run: func(t *env) {
			e := suite.NewEvent("test:note", " { \"a b\" : [ 1 ,\n\t2 ] , \"c\":\" x \" } ")
			t.Append(t.Main(), "a", eventlog.New(), e)
			t.WantEqual("data", `{"a b":[1,2],"c":" x "}`, string(t.Read(t.Reopen(), "a", eventlog.All())[0].Data))
		},
	},
	{
		Name:        "members of the envelope",
		Explanation: "Unknown members of the envelope are stored byte for byte and hashed.",
		Run:         testJSONExtras,
	},
	{
		Name:        "invalid UTF-8",
		Explanation: "Invalid UTF-8 in data or metadata is rejected. Nothing is replaced, and nothing is written.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 1)
			for _, bad := range []string{"\"\xff\"", "\"a\xc3\"", "{\"\xed\xa0\x80\":1}", "\"\xf4\x90\x80\x80\""} {
				t.badJSON(bad)
			}
		},
	},
	{
		Name:        "duplicate names",
		Explanation: "Objects with a repeated name are rejected at any depth, in any escaping of the name.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 1)
			for _, bad := range []string{`{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{"x":[{"b":1,"c":2,"b":3}]}`} {
				t.badJSON(bad)
			}
		},
	},
	{
		Name:        "not JSON",
		Explanation: "Data that is not one well-formed JSON value, and metadata that is not an object, are rejected.",
		Run:         testJSONMalformed,
	},
	{
		Name:        "payloads of known types",
		Explanation: "Data of a known type with the wrong shape is rejected before it can break a history.",
		Run:         testJSONShapes,
	},
	{
		Name:        "unknown members of known types",
		Explanation: "Unknown members of a known payload are stored.",
		Run: func(t *env) {
			const data = `{"role":"user","x_later":[9007199254740993,1.0],"parts":[{"type":"text","text":"hi","x":{"y":-0}},{"type":"x_new","z":1E400}]}`
			t.Append(t.Main(), "a", eventlog.New(), suite.NewEvent(event.MessageAdded, data))
			t.WantEqual("data", data, string(t.Read(t.Reopen(), "a", eventlog.All())[0].Data))
		},
	},
	{
		Name:        "newer payloads",
		Explanation: "A newer version of a known type is rejected at append with a VersionError.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 1)
			t.WantAppendError(event.ErrVersion, t.Main(), "a", eventlog.Any(), suite.NewEvent("message_added/99", `{"role":"user"}`))
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
	l := t.Main()
	for _, data := range literals {
		t.Append(l, "a", eventlog.Any(), suite.NewEvent("test:note", data))
	}
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		events := t.Read(l, "a", eventlog.All())
		for i, want := range literals {
			t.WantEqual("data", want, string(events[i].Data))
		}
		t.WantVerified(l, "a")
	})
}

func testJSONExtras(t *env) {
	e := suite.NoteWithMetadata(1, `{"k":1}`)
	t.Must(e.SetExtras(jsontext.Value(`{"x_trace":{"n":9007199254740993},"a":[1.0]}`)))
	t.Append(t.Main(), "a", eventlog.New(), e, suite.Note(2))
	t.WantAppendError(eventlog.ErrConflict, t.Main(), "a", eventlog.New(), suite.NoteWithMetadata(1, `{"k":1}`))
	got := t.Read(t.Reopen(), "a", eventlog.All())
	t.WantEqual("extras", `"x_trace":{"n":9007199254740993},"a":[1.0]`, string(got[0].Extras()))
	t.WantVerified(t.Main(), "a")
}

// badJSON checks that a value is rejected as data and inside metadata.
func (t *env) badJSON(bad string) {
	t.Helper()
	t.WantAppendError(event.ErrInvalidData, t.Main(), "a", eventlog.Any(), suite.NewEvent("test:note", bad))
	t.WantAppendError(event.ErrInvalid, t.Main(), "a", eventlog.Any(), suite.NewEvent(event.MessageAdded, bad))
	t.WantAppendError(event.Rule("metadata"), t.Main(), "a", eventlog.Any(), suite.NoteWithMetadata(1, `{"k":`+bad+`}`))
	t.WantAppendError(event.ErrInvalidData, t.Main(), "a", eventlog.Any().Lenient(), suite.NewEvent("test:note", bad))
}

func testJSONMalformed(t *env) {
	t.Fill(t.Main(), "a", 1)
	for _, bad := range []string{"", " ", "{", "1 2", `{"a":1,}`, "NaN", "01", "'a'", `"\x41"`, "\"a\nb\"", "\ufeff1"} {
		t.WantAppendError(event.ErrInvalidData, t.Main(), "a", eventlog.Any(), suite.NewEvent("test:note", bad))
	}
	for _, bad := range []string{"1", "[]", "null", `"a"`, "{", "{} {}"} {
		t.WantAppendError(event.Rule("metadata"), t.Main(), "a", eventlog.Any(), suite.NoteWithMetadata(1, bad))
	}
}

func testJSONShapes(t *env) {
	t.Fill(t.Main(), "a", 1)
	for _, bad := range []event.Event{
		suite.NewEvent(event.MessageAdded, `[]`),
		suite.NewEvent(event.MessageAdded, `"text"`),
		suite.NewEvent(event.MessageAdded, `{"role":5}`),
		suite.NewEvent(event.MessageAdded, `{"role":"user","parts":{}}`),
		suite.NewEvent(event.MessageAdded, `{"role":"robot","parts":[]}`),
		suite.NewEvent(event.MessageAdded, `{"role":"assistant","parts":[]}`),
		suite.NewEvent(event.MessageAdded, `{"role":"assistant","parts":[{"type":"tool_call","name":"x"}]}`),
		suite.NewEvent(event.ToolStarted, `{"call_id":[],"name":"x"}`),
		suite.NewEvent(event.ToolCompleted, `{"call_id":"c","content":"text"}`),
		suite.NewEvent(event.HeadMoved, `{"to":"1"}`),
		suite.NewEvent(event.TurnStarted, `7`),
		suite.NewEvent(event.SessionForked, `{}`),
	} {
		t.WantAppendError(event.ErrInvalid, t.Main(), "a", eventlog.Any(), bad)
	}
	t.WantAppendError(event.Rule("unknown_role"), t.Main(), "a", eventlog.Any(), suite.NewEvent(event.MessageAdded, `{"role":"robot","parts":[]}`))
	t.WantAppendError(event.ErrInvalidPayload, t.Main(), "a", eventlog.Any(), suite.NewEvent(event.MessageAdded, `[]`))
	t.WantAppendError(event.Rule("empty_message"), t.Main(), "a", eventlog.Any(), suite.NewEvent(event.MessageAdded, `{"role":"assistant","parts":[]}`))
}
