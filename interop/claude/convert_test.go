package claude_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// importOne imports a user or assistant record and returns its message.
func importOne(t *testing.T, role, message string) (*event.Event, event.Message) {
	t.Helper()
	log := importtest.NewLog(t)
	record := `{"type":"` + role + `","sessionId":"s","cwd":"/","uuid":"u","message":` + strings.ReplaceAll(message, "\n", "") + `}`
	if got, err := loadText(t, log, "f", record); err != nil || len(got.Rejected) > 0 {
		t.Fatalf("import %s: %+v, %v", record, got, err)
	}
	e := importtest.Events(t, log, "s")[1]
	m, ok, err := event.Decode[event.Message](&e)
	if err != nil || !ok {
		t.Fatalf("%s became %s, %v", record, e.Type, err)
	}
	return &e, m
}

func TestContentBlocks(t *testing.T) {
	for _, test := range []struct {
		name, block string
		want        event.Part
	}{
		{"text", `{"type":"text","text":"hi"}`, event.Text("hi")},
		{"a bare string", `"hi"`, event.Text("hi")},
		{
			"text with more", `{"type":"text","text":"hi","cache_control":{"type":"ephemeral"},"n":1.50}`,
			event.Part{Type: event.TextPart, Text: "hi", Extra: []byte(`{"cache_control":{"type":"ephemeral"},"n":1.50}`)},
		},
		{"thinking", `{"type":"thinking","thinking":"hm","signature":"c2ln"}`, event.Reasoning("hm", "c2ln")},
		{
			"redacted thinking", `{"type":"redacted_thinking","data":"eHl6"}`,
			event.Part{Type: event.ReasoningPart, Encrypted: "eHl6", Redacted: true},
		},
		{
			"a call", `{"type":"tool_use","id":"c","name":"Bash","input":{"z":1e400,"a":9007199254740993,"s":"\u003c\u00e9\/"}}`,
			event.ToolCall("c", "Bash", []byte(`{"z":1e400,"a":9007199254740993,"s":"\u003c\u00e9\/"}`)),
		},
		{
			"a call of the provider's own", `{"type":"server_tool_use","id":"c","name":"web_search","input":{}}`,
			event.Part{Type: event.ServerToolCallPart, CallID: "c", Name: "web_search", Arguments: []byte(`{}`)},
		},
		{
			"a call without a name", `{"type":"tool_use","id":"c","input":{}}`,
			event.Opaque("tool_use", []byte(`{"type":"tool_use","id":"c","input":{}}`)),
		},
		{"an image by address", `{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}`, event.Part{Type: event.ImagePart, URL: "https://example.org/a.png"}},
		{
			"a malformed image", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%%"}}`,
			event.Opaque("image", []byte(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%%"}}`)),
		},
		{"an unknown block", `{"type":"fallback","x":[1,2]}`, event.Opaque("fallback", []byte(`{"type":"fallback","x":[1,2]}`))},
		{"no object", `17`, event.Opaque("block", []byte(`17`))},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, m := importOne(t, "assistant", `{"role":"assistant","id":"m","content":[{"type":"text","text":"Look:"},`+test.block+`]}`)
			importtest.Same(t, "part", []event.Part{test.want}, m.Parts[1:])
		})
	}
}

func TestToolResults(t *testing.T) {
	e, m := importOne(t, "user", `{"role":"user","content":[
		{"type":"tool_result","tool_use_id":"c","is_error":true,"content":[{"type":"text","text":"no"},{"type":"tool_reference","tool_name":"X"}]},
		{"type":"text","text":"do we have a test?"}]}`)
	importtest.Same(t, "message", event.Message{
		Role: event.Tool,
		Parts: []event.Part{
			{Type: event.ToolResultPart, CallID: "c", IsError: true, Content: []event.Part{
				event.Text("no"), {Type: event.TextPart, Text: "tool X", Extra: []byte(`{"type":"tool_reference"}`)},
			}},
			event.Text("do we have a test?"),
		},
		Extra: m.Extra,
	}, m)
	if broken, _ := e.MetadataValue("broken"); string(broken) != `["orphan_result"]` {
		t.Errorf("broken is %s", broken)
	}
}

func TestDocumentsBecomeBlobs(t *testing.T) {
	_, m := importOne(t, "user", `{"role":"user","content":[{"type":"document","title":"t.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}}]}`)
	importtest.Same(t, "part", []event.Part{{
		Type: event.DocumentPart, Name: "t.pdf", MediaType: "application/pdf",
		Blob: event.BlobRef{Blob: event.DigestOf([]byte("%PDF")), Bytes: 4},
	}}, m.Parts)
}

func TestMalformedMembersStayInTheExtra(t *testing.T) {
	for name, message := range map[string]string{
		"an empty answer":   `{"role":"assistant","id":"m","content":[]}`,
		"null content":      `{"role":"assistant","id":"m","content":null}`,
		"negative usage":    `{"role":"assistant","id":"m","content":"x","usage":{"input_tokens":-1}}`,
		"usage in text":     `{"role":"assistant","id":"m","content":"x","usage":"many"}`,
		"a null model":      `{"role":"assistant","id":"m","content":"x","model":null}`,
		"a number as an id": `{"role":"assistant","id":7,"content":"x"}`,
		"another role":      `{"role":"critic","id":"m","content":"x"}`,
	} {
		_, m := importOne(t, "assistant", message)
		for _, member := range []string{`"usage":{"input_tokens":-1}`, `"usage":"many"`, `"model":null`, `"id":7`, `"role":"critic"`} {
			if strings.Contains(message, member) && !strings.Contains(string(m.Extra), member) {
				t.Errorf("%s: extra lacks %s: %s", name, member, m.Extra)
			}
		}
	}
}

func TestRawRecords(t *testing.T) {
	log := importtest.NewLog(t)
	odd := []string{
		`{"type":"user","sessionId":"s","cwd":"/","message":"no object"}`,
		`{"type":"system","subtype":"local_command","sessionId":"s","content":"\u003cx> é 1.0"}`,
		`{"sessionId":"s"}`,
		`{"type":7,"sessionId":"s"}`,
		`{"type":"a\u0007","sessionId":"s"}`,
		`{"type":"ai-title","aiTitle":["x"],"sessionId":"s"}`,
		`{"type":"system","subtype":"microcompact_boundary","microcompactMetadata":"x","sessionId":"s"}`,
		`{"type":"new-thing","uuid":{},"parentUuid":[],"isSidechain":"yes","sessionId":"s"}`,
	}
	got, err := loadText(t, log, "f", strings.Join(odd, "\n")+`
{"type":"user","sessionId":"s","message":{"role":"user","content":"Hi"}}`)
	if err != nil || got.Raw != len(odd) || len(got.Rejected) > 0 {
		t.Fatalf("import: %+v, %v", got, err)
	}
	all := importtest.Events(t, log, "s")
	importtest.Same(t, "types", []string{
		"session_started", "claude:user", "claude:system:local_command", "claude:untyped", "claude:untyped", "claude:other",
		"claude:ai-title", "claude:system:microcompact_boundary", "claude:new-thing", "user Hi…", "session_updated",
	}, importtest.Outlines(t, all))
	for i, record := range odd {
		if string(all[i+1].Data) != record {
			t.Errorf("data is %s, not the record %s", all[i+1].Data, record)
		}
	}
}

func TestRejectedRecords(t *testing.T) {
	log := importtest.NewLog(t)
	got, err := loadText(t, log, "f", strings.Join([]string{
		userPrompt("s", "u1", "", "One"), `[1]`, `{"type":"user","type":"user"}`, `{"type":"user"`,
		`{"type":"mode","sessionId":"` + strings.Repeat("x", 300) + `"}`, userPrompt("s", "u2", "u1", "Two"),
	}, "\n"))
	if err != nil || got.Imported != 2 || len(got.Rejected) != 4 {
		t.Fatalf("import: %+v, %v", got, err)
	}
	for i, line := range []int64{3, 4, 5, 6} {
		if got.Rejected[i].Line != line || got.Rejected[i].Reason == "" {
			t.Errorf("refused: %+v, want line %d", got.Rejected[i], line)
		}
	}
}

func TestInvalidUnicodeIsRepaired(t *testing.T) {
	importtest.Repairs(t, claude.Format{}, "s", strings.Replace(userPrompt("s", "u1", "", "Cut: X"), "X", `\ud83d`, 1))
}

func TestBigRecords(t *testing.T) {
	log := importtest.NewLog(t)
	big := strings.Repeat("long ", 1<<20)
	text := userPrompt("s", "u1", "", "One") + userPrompt("s", "u2", "u1", big) + userPrompt("s", "u3", "u2", "Three")
	for _, events := range []int{4, 0} {
		if got, err := loadText(t, log, "f", text); err != nil || got.Events != events {
			t.Fatalf("import: %d events, not %d; %v", got.Events, events, err)
		}
	}
	all := importtest.Events(t, log, "s")
	m, _, err := event.Decode[event.Message](&all[2])
	if _, _, spilled := all[2].Spilled(); err != nil || m.Text() != big || !spilled {
		t.Errorf("the big message has %d bytes, spilled %v, %v", len(m.Text()), spilled, err)
	}
}

func TestRetractedLinesLeaveThePath(t *testing.T) {
	log := importtest.NewLog(t)
	answer := func(uuid, parent, id, text, more string) string {
		return `{"type":"assistant","sessionId":"s","cwd":"/","uuid":"` + uuid + `","parentUuid":"` + parent + `"` + more +
			`,"message":{"role":"assistant","id":"` + id + `","content":"` + text + `"}}` + "\n"
	}
	text := userPrompt("s", "u1", "", "One") + answer("a1", "u1", "m1", "Half", "") +
		`{"type":"system","subtype":"model_refusal_fallback","sessionId":"s","cwd":"/","uuid":"n","parentUuid":"a1","retractedMessageUuids":["a1"]}` + "\n" +
		answer("a2", "n", "m2", "Whole", `,"supersedesUuids":["a1"]`)
	if _, err := loadText(t, log, "f", text); err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "user One…", "head_moved to 2", "claude:system:model_refusal_fallback", "assistant Whole…",
	}, importtest.Outline(t, log, "s"))
}
