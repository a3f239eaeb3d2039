package gemini_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/importtest"
)

func TestContent(t *testing.T) {
	for _, test := range []struct {
		name, content string
		want          []event.Part
	}{
		{"a text", `"hi"`, []event.Part{event.Text("hi")}},
		{"a part", `{"text":"hi"}`, []event.Part{event.Text("hi")}},
		{"a text with more", `[{"text":"hi","x":1}]`, []event.Part{{Type: event.TextPart, Text: "hi", Extra: []byte(`{"x":1}`)}}},
		{"a thought", `[{"text":"hm","thought":true}]`, []event.Part{{Type: event.ReasoningPart, Text: "hm", Extra: []byte(`{"thought":true}`)}}},
		{
			"a sound", `[{"inlineData":{"mimeType":"audio/wav","data":"UElORw==","displayName":"ping.wav"}}]`,
			[]event.Part{{Type: event.AudioPart, MediaType: "audio/wav", Name: "ping.wav", Blob: event.BlobRef{Blob: event.DigestOf([]byte("PING")), Bytes: 4}}},
		},
		{
			"a file", `[{"fileData":{"mimeType":"application/pdf","fileUri":"https://example.org/t.pdf"}}]`,
			[]event.Part{{Type: event.DocumentPart, MediaType: "application/pdf", URL: "https://example.org/t.pdf"}},
		},
		{
			"malformed data", `[{"inlineData":{"mimeType":"image/png","data":"%%"}}]`,
			[]event.Part{event.Opaque("inlineData", []byte(`{"inlineData":{"mimeType":"image/png","data":"%%"}}`))},
		},
		{
			"a response", `[{"functionResponse":{"name":"read"}}]`,
			[]event.Part{event.Opaque("functionResponse", []byte(`{"functionResponse":{"name":"read"}}`))},
		},
		{"no object", `[7]`, []event.Part{event.Opaque("part", []byte(`7`))}},
		{"nothing", `null`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := importtest.NewLog(t)
			importMessages(t, log, `{"id":"a","type":"user","content":`+test.content+`}`, `{"id":"b","type":"user","content":"Hi"}`)
			m, _, err := event.Decode[event.Message](&importtest.Events(t, log, "s")[1])
			if err != nil {
				t.Fatal(err)
			}
			importtest.Same(t, "parts", test.want, m.Parts)
		})
	}
}

func TestResults(t *testing.T) {
	for result, want := range map[string]string{
		`[{"functionResponse":{"id":"c","name":"read","response":{"output":"four"}}}]`: "four",
		`[{"functionResponse":{"response":{"output":"four","lines":1}}}]`:              `{"output":"four","lines":1}`,
		`[{"functionResponse":{"response":{"output":""}}}]`:                            `{"output":""}`,
		`[{"functionResponse":{"response":{"content":["four"]}}}]`:                     `{"content":["four"]}`,
		`{"functionResponse":{"response":{"error":"no"}}}`:                             "no (error)",
		`[{"functionResponse":{"id":"x","name":"read","response":{"output":"4"}}}]`:    "4 (more)",
		`[{"functionResponse":{"response":{"output":"4"}},"x":1}]`:                     "4 (more)",
		`[{"functionResponse":{"response":7}}]`:                                        "7",
		`"four"`:                                                                       "four",
		`[{"text":"four"},{"text":"!"}]`:                                               "four!",
	} {
		log := importtest.NewLog(t)
		importMessages(t, log, user("a", "Count"), answer("b", `"content":"","toolCalls":[{"id":"c","name":"read","args":{},"status":"success","result":`+result+`}]`))
		m, _, err := event.Decode[event.Message](&importtest.Events(t, log, "s")[3])
		if err != nil || len(m.ToolResults()) != 1 {
			t.Fatalf("%s became %+v, %v", result, m, err)
		}
		p := m.Parts[0]
		got := event.Message{Parts: p.Content}.Text()
		if p.IsError {
			got += " (error)"
		}
		if strings.Contains(string(p.Extra), `"result":`+result) {
			got += " (more)"
		}
		if got != want {
			t.Errorf("%s has the text %s, not %s", result, got, want)
		}
	}
}

func TestMalformedCalls(t *testing.T) {
	for _, calls := range []string{`"none"`, `[7]`, `[{"name":"read"}]`} {
		log := importtest.NewLog(t)
		importMessages(t, log, user("a", "Count"), answer("b", `"content":"Yes","toolCalls":`+calls+`,"thoughts":"many","tokens":{"input":1,"cached":2}`))
		m, _, err := event.Decode[event.Message](&importtest.Events(t, log, "s")[2])
		if err != nil {
			t.Fatal(err)
		}
		importtest.Same(t, "parts", []event.Part{event.Text("Yes"), event.Opaque("toolCalls", []byte(calls))}, m.Parts)
		importtest.Same(t, "extra", `{"id":"b","timestamp":"2026-01-01T00:00:02Z","type":"gemini","thoughts":"many","tokens":{"input":1,"cached":2}}`, string(m.Extra))
	}
}

func TestAnEmptyAnswerIsMarked(t *testing.T) {
	log := importtest.NewLog(t)
	importMessages(t, log, user("a", "Count"), answer("b", `"content":""`))
	if broken, _ := importtest.Events(t, log, "s")[2].MetadataValue("broken"); string(broken) != `["empty_message"]` {
		t.Errorf("broken is %s", broken)
	}
}

func TestRecordsOfLines(t *testing.T) {
	log := importtest.NewLog(t)
	got, err := loadText(t, log, `{"id":"x","type":"user","content":"Early"}
{"sessionId":"s","projectHash":"p"}
{"id":"a","type":"user","content":"One"}
{"$rewindTo":"gone"}
{"$rewindTo":"gone"}
{"$set":"x"}
{"kind":7}
{"sessionId":"s","projectHash":"p","resumed":true}
{"id":"b","type":"user","type":"user"}
{"id":"b","ty`)
	if err != nil || got.Skipped != 1 || got.Raw != 5 || len(got.Rejected) != 2 || got.Rejected[0].Line != 9 || got.Rejected[1].Line != 10 {
		t.Fatalf("import: %+v, %v", got, err)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "head_moved to 1", "gemini:$rewindTo", "gemini:$rewindTo", "gemini:$set", "gemini:untyped", "gemini:session",
	}, importtest.Outline(t, log, "s"))
}
