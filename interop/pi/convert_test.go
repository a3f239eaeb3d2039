package pi_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/pi"
)

// importOne imports a message and returns its event.
func importOne(t *testing.T, message string) (*event.Event, event.Message) {
	t.Helper()
	log := importtest.NewLog(t)
	importLines(t, log, header, entry("m", "", message))
	e := importtest.Events(t, log, "s")[1]
	m, _, err := event.Decode[event.Message](&e)
	if err != nil {
		t.Fatalf("%s became %s, %v", message, e.Type, err)
	}
	return &e, m
}

func TestContentBlocks(t *testing.T) {
	item := `"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"encrypted_content\":\"eHl6\",\"summary\":[]}"`
	for _, test := range []struct {
		name, block string
		want        event.Part
	}{
		{"text", `{"type":"text","text":"hi"}`, event.Text("hi")},
		{
			"signed text", `{"type":"text","text":"hi","textSignature":"{\"id\":\"msg_1\"}"}`,
			event.Part{Type: event.TextPart, Text: "hi", Extra: []byte(`{"textSignature":"{\"id\":\"msg_1\"}"}`)},
		},
		{"thinking", `{"type":"thinking","thinking":"hm","thinkingSignature":"c2ln"}`, event.Reasoning("hm", "c2ln")},
		{"truncated thinking", `{"type":"thinking","thinking":"hm","thinkingSignature":""}`, event.Reasoning("hm", "")},
		{
			"redacted thinking", `{"type":"thinking","thinking":"","thinkingSignature":"eHl6","redacted":true}`,
			event.Part{Type: event.ReasoningPart, Encrypted: "eHl6", Redacted: true},
		},
		{
			"an item of OpenAI", `{"type":"thinking","thinking":"hm","thinkingSignature":` + item + `}`,
			event.Part{Type: event.ReasoningPart, ID: "rs_1", Text: "hm", Encrypted: "eHl6", Extra: []byte(`{"item":{"type":"reasoning","summary":[]}}`)},
		},
		{
			"a call", `{"type":"toolCall","id":"call_1|fc_1","name":"bash","arguments":{"z":1e400,"a":9007199254740993},"thoughtSignature":"x"}`,
			event.Part{Type: event.ToolCallPart, CallID: "call_1|fc_1", Name: "bash", Arguments: []byte(`{"z":1e400,"a":9007199254740993}`),
				Extra: []byte(`{"thoughtSignature":"x"}`)},
		},
		{
			"a truncated call", `{"type":"toolCall","id":"c","name":"bash","arguments":{},"partialJson":"{\"a"}`,
			event.Part{Type: event.ToolCallPart, CallID: "c", Name: "bash", Arguments: []byte(`{}`), Extra: []byte(`{"partialJson":"{\"a"}`)},
		},
		{"a call without a name", `{"type":"toolCall","id":"c"}`, event.Opaque("toolCall", []byte(`{"type":"toolCall","id":"c"}`))},
		{
			"an image", `{"type":"image","mimeType":"image/png","data":"UE5H"}`,
			event.Image("image/png", event.BlobRef{Blob: event.DigestOf([]byte("PNG")), Bytes: 3}),
		},
		{
			"a malformed image", `{"type":"image","mimeType":"image/png","data":"%%"}`,
			event.Opaque("image", []byte(`{"type":"image","mimeType":"image/png","data":"%%"}`)),
		},
		{"an unknown block", `{"type":"video","x":[1,2]}`, event.Opaque("video", []byte(`{"type":"video","x":[1,2]}`))},
		{"a block without a type", `{"x":1}`, event.Opaque("block", []byte(`{"x":1}`))},
		{"no object", `17`, event.Opaque("block", []byte(`17`))},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, m := importOne(t, `"role":"assistant","content":[{"type":"text","text":"Look:"},`+test.block+`]`)
			importtest.Same(t, "part", []event.Part{test.want}, m.Parts[1:])
		})
	}
}

func TestAnswers(t *testing.T) {
	_, m := importOne(t, `"role":"assistant","content":[{"type":"text","text":"hi"}],"api":"anthropic-messages","provider":"anthropic","model":"claude",`+
		`"responseId":"msg_1","usage":null,"stopReason":"stop","timestamp":1767225601000`)
	importtest.Same(t, "message", event.Message{
		Role: event.Assistant, Provider: "anthropic", Model: "claude", ResponseID: "msg_1", StopReason: "stop",
		Parts: []event.Part{event.Text("hi")},
		Extra: []byte(`{"id":"m","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","type":"message",` +
			`"message":{"api":"anthropic-messages","usage":null,"timestamp":1767225601000}}`),
	}, m)
}

func TestAbortedAnswersAreMarked(t *testing.T) {
	e, m := importOne(t, `"role":"assistant","content":[],"stopReason":"aborted","errorMessage":"Request was aborted."`)
	if broken, _ := e.MetadataValue("broken"); string(broken) != `["empty_message"]` || m.StopReason != "aborted" {
		t.Errorf("broken is %s, the message %+v", broken, m)
	}
}

func TestResultsAreMarked(t *testing.T) {
	e, m := importOne(t, `"role":"toolResult","toolCallId":"c","toolName":"read","isError":true,"content":[{"type":"text","text":"no"}],"details":{"diff":""}`)
	importtest.Same(t, "parts", []event.Part{
		{Type: event.ToolResultPart, CallID: "c", Name: "read", IsError: true, Content: []event.Part{event.Text("no")}},
	}, m.Parts)
	if broken, _ := e.MetadataValue("broken"); string(broken) != `["orphan_result"]` || !strings.Contains(string(m.Extra), `"details":{"diff":""}`) {
		t.Errorf("broken is %s, the extra %s", broken, m.Extra)
	}
}

func TestCommandsOfTheUser(t *testing.T) {
	for message, want := range map[string]string{
		`"command":"ls","output":"a\nb\n","exitCode":0,"cancelled":false,"truncated":false`: "$ ls\na\nb\n",
		`"command":"ls x","output":"no x\n","exitCode":2`:                                   "$ ls x\nno x\n[exit code 2]",
		`"command":"sleep 9","output":"","cancelled":true`:                                  "$ sleep 9\n[canceled]",
		`"command":"find","output":"a","truncated":true,"fullOutputPath":"/tmp/f"`:          "$ find\na\n[cut; all of it is in /tmp/f]",
	} {
		log := importtest.NewLog(t)
		importLines(t, log, header, entry("m", "", `"role":"bashExecution",`+message))
		c, ok, err := event.Decode[event.ContextEntry](&importtest.Events(t, log, "s")[1])
		if err != nil || !ok || c.Parts[0].Text != want || c.Kind != "bashExecution" || strings.Contains(string(c.Extra), `"output"`) {
			t.Errorf("%s became %+v, %v", message, c, err)
		}
	}
}

func TestRawRecords(t *testing.T) {
	log := importtest.NewLog(t)
	odd := []string{
		entry("a", "start", `"role":"bashExecution","command":"ls","output":"","excludeFromContext":true`),
		entry("b", "a", `"role":"oracle","content":"x"`),
		entry("c", "b", `"role":"toolResult","content":"x"`),
		entry("d", "c", `"role":"custom","customType":"x","content":[]`),
		line("e", "d", `"type":"message","message":"no object"`),
		line("f", "e", `"type":"branch_summary","fromId":"a"`),
		line("g", "f", `"type":"session_info","name":""`),
		line("h", "g", `"type":"a\u0007"`),
		line("i", "h", `"kind":"x"`),
		line("j", "i", `"type":"label","targetId":"a"`),
		line("k", "j", `"type":"custom_message","customType":"x"`),
	}
	got := importLines(t, log, append([]string{header, user("start", "", "One")}, odd...)...)
	if got.Raw != len(odd) {
		t.Errorf("import: %+v", got)
	}
	all := importtest.Events(t, log, "s")[2:]
	var types []string
	for i, record := range odd {
		types = append(types, string(all[i].Type))
		if string(all[i].Data) != record {
			t.Errorf("data is %s, not the record %s", all[i].Data, record)
		}
	}
	importtest.Same(t, "types", []string{
		"pi:message:bashExecution", "pi:message:oracle", "pi:message:toolResult", "pi:message:custom", "pi:message", "pi:branch_summary",
		"pi:session_info", "pi:other", "pi:untyped", "pi:label", "pi:custom_message",
	}, types)
}

func TestRejectedRecords(t *testing.T) {
	log := importtest.NewLog(t)
	got, err := loadText(t, log, "f", strings.Join([]string{
		header, user("a", "", "One"), `[1]`, `{"type":"x","type":"y"}`, `{"type":"message"`, user("b", "a", "Two"),
		`{"type":"session","id":"` + strings.Repeat("x", 300) + `","cwd":"/"}`, `{"type":"message","message":{"role":"user","role":"user"}}`,
	}, "\n"))
	if err != nil || got.Imported != 3 || len(got.Rejected) != 5 {
		t.Fatalf("import: %+v, %v", got, err)
	}
	for i, line := range []int64{3, 4, 5, 7, 8} {
		if got.Rejected[i].Line != line || got.Rejected[i].Reason == "" {
			t.Errorf("refused: %+v, want line %d", got.Rejected[i], line)
		}
	}
}

func TestInvalidUnicodeIsRepaired(t *testing.T) {
	importtest.Repairs(t, pi.Format{}, "s", header+"\n"+strings.Replace(user("a", "", "Cut: X"), "X", `\ud83d`, 1))
}

func TestBigRecords(t *testing.T) {
	log := importtest.NewLog(t)
	big := strings.Repeat("long ", 1<<17)
	importLines(t, log, header, user("a", "", "One"), user("b", "a", big), user("c", "b", "Three"))
	m, _, err := event.Decode[event.Message](&importtest.Events(t, log, "s")[2])
	if err != nil || m.Text() != big {
		t.Errorf("the big message has %d bytes, %v", len(m.Text()), err)
	}
}
