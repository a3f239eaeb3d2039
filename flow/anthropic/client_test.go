package anthropic_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/anthropic"
	"github.com/convlog/convlog/flow/internal/httpmodel/modeltest"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/projection"
)

const key = "secret-key"

// orderName is the name of the tool shop:order in a request.
var orderName = modelapi.AnthropicToolName("shop:order")

func newModel(url string, client *http.Client) flow.Model {
	return &anthropic.Client{BaseURL: url, Key: key, Model: "m", HTTP: client, Now: func() time.Time { return modeltest.Now }}
}

// say is an event of the stream, with its type as the name.
func say(data string) string {
	v, _, _ := rawjson.Lookup([]byte(data), "type")
	name, _ := rawjson.Text(v)
	return "event: " + name + "\ndata: " + data + "\n\n"
}

const start = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"stop_sequence":null,
"usage":{"input_tokens":12,"cache_creation_input_tokens":3,"cache_read_input_tokens":8,"output_tokens":1,"service_tier":"standard"}}}`

// block is the events of a content block.
func block(index, first string, deltas ...string) string {
	all := say(`{"type":"content_block_start","index":` + index + `,"content_block":` + first + `}`)
	for _, d := range deltas {
		all += say(`{"type":"content_block_delta","index":` + index + `,"delta":` + d + `}`)
	}
	return all + say(`{"type":"content_block_stop","index":`+index+`}`)
}

func end(reason string) string {
	return say(`{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`) +
		say(`{"type":"message_stop"}`)
}

func begin() string { return say(strings.ReplaceAll(start, "\n", "")) }

var stream = begin() + say(`{"type":"ping"}`) +
	block("0", `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"H"}`, `{"type":"thinking_delta","thinking":"m."}`, `{"type":"signature_delta","signature":"c2ln"}`) +
	block("1", `{"type":"redacted_thinking","data":"eHl6"}`) +
	block("2", `{"type":"text","text":""}`, `{"type":"text_delta","text":"I lo"}`, `{"type":"text_delta","text":"ok. é\ud83d\ude00"}`) +
	block("3", `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`, `{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}`) +
	block("4", `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}]}`) +
	say(`{"type":"something_new","x":1}`) +
	block("5", `{"type":"tool_use","id":"c1","name":"`+orderName+`","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"n\":90071"}`, `{"type":"input_json_delta","partial_json":"99254740993}"}`) +
	block("6", `{"type":"tool_use","id":"c2","name":"refund","input":{}}`) +
	end("tool_use")

var whole = `{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[
	{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"redacted_thinking","data":"eHl6"},{"type":"text","text":"I look. é😀"},
	{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},
	` + searchResult + `,
	{"type":"tool_use","id":"c1","name":"` + orderName + `","input":{"n":9007199254740993}},{"type":"tool_use","id":"c2","name":"refund","input":{}}],
	"stop_reason":"tool_use","stop_sequence":null,
	"usage":{"input_tokens":12,"cache_creation_input_tokens":3,"cache_read_input_tokens":8,"output_tokens":9,"service_tier":"standard","output_tokens_details":{"thinking_tokens":4}}}`

const searchResult = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}]}`

func TestModel(t *testing.T) {
	server := event.ToolCall("srvtoolu_1", "web_search", []byte(`{"query":"x"}`))
	server.Type = event.ServerToolCallPart
	want := event.Message{
		Role: event.Assistant, Provider: "anthropic", Model: "m-1", ResponseID: "msg_1", StopReason: "tool_calls",
		Parts: []event.Part{
			event.Reasoning("Hm.", "c2ln"), {Type: event.ReasoningPart, Encrypted: "eHl6", Redacted: true}, event.Text("I look. é😀"),
			server, event.Opaque("web_search_tool_result", []byte(searchResult)),
			event.ToolCall("c1", "shop:order", []byte(`{"n":9007199254740993}`)), event.ToolCall("c2", "refund", nil),
		},
		Usage: event.Usage{
			InputTokens: 12, OutputTokens: 9, CacheReadTokens: 8, CacheWriteTokens: 3, ReasoningTokens: 4,
			Extra: []byte(`{"service_tier":"standard","output_tokens_details":{"thinking_tokens":4}}`),
		},
		Extra: []byte(`{"stop_reason":"tool_use"}`),
	}
	text := block("0", `{"type":"text","text":"Hi"}`)
	modeltest.Run(t, modeltest.Suite{
		New: newModel, Stream: stream, Whole: whole, Key: key, Want: want, Check: checkBody,
		Fixed: []string{`{"messages":[]}`, `{"stream":false}`, `{"model":"x"}`, `{"system":"x"}`},
		Broken: []string{
			begin() + text, begin() + text + say(`{"type":"message_stop"}`), say(`{"type":"message_stop"}`), text + text + end("end_turn"),
			begin() + block("1", `{"type":"text","text":"Hi"}`) + end("end_turn"), begin() + block("-1", `{}`) + end("end_turn"),
			begin() + say(`{"type":"content_block_delta","index":0,"delta":{}}`) + end("end_turn"),
			begin() + block("0", `5`) + end("end_turn"), begin() + block("0", `{}`, `5`) + end("end_turn"),
			say(`{"type":"message_start","message":null}`) + end("end_turn"), begin() + say(`{"type":"message_delta"}`),
			begin() + say(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":5}`),
		},
	})
	t.Run("thinking goes back", func(t *testing.T) {
		r := modeltest.Request()
		r.Messages = append(r.Messages, projection.Entry{Message: want})
		body, _ := sent(t, anthropic.Client{Model: "m"}, r)
		if !strings.Contains(body, `{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"redacted_thinking","data":"eHl6"}`) || checkBody([]byte(body)) != nil {
			t.Errorf("%s: %v", body, checkBody([]byte(body)))
		}
	})
}

// checkBody checks the messages and the system text of a body.
func checkBody(body []byte) error {
	members, err := rawjson.Members(body)
	if err != nil {
		return err
	}
	var rendered []rawjson.Member
	for _, m := range members {
		if m.Name == "messages" || m.Name == "system" {
			rendered = append(rendered, m)
		}
	}
	return modelapi.CheckMessages(rawjson.Object(rendered))
}

// sent returns the body of a request.
func sent(t *testing.T, c anthropic.Client, r *flow.Request) (body string, header http.Header) {
	t.Helper()
	c.BaseURL = modeltest.Serve(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/api/v1/messages" {
			t.Errorf("asked at %v", q.URL)
		}
		raw, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		body, header = string(raw), q.Header
		modeltest.Say(w, stream)
	}) + "/api/"
	if _, err := c.Generate(t.Context(), r, func(eventlog.Delta) {}); err != nil {
		t.Fatal(err)
	}
	return body, header
}

func TestBody(t *testing.T) {
	r := &flow.Request{
		Model: "other", System: "Be brief.", Output: []byte(`{"type":"object"}`), Tools: []flow.ToolSpec{{Name: "f", Description: "Do it."}},
		Parameters: []byte(`{"max_tokens":5,"temperature":0.70,"tools":[{"type":"web_search_20250305","name":"web_search"}]}`),
	}
	body, header := sent(t, anthropic.Client{Key: "k", Model: "m", Header: http.Header{"Anthropic-Beta": {"b"}}}, r)
	want := `{"model":"other","max_tokens":5,"system":[{"type":"text","text":"Be brief."}],"messages":[],` +
		`"tools":[{"name":"f","description":"Do it.","input_schema":{"type":"object","properties":{}}},{"type":"web_search_20250305","name":"web_search"}],` +
		`"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},"stream":true,"temperature":0.70}`
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if header.Get("X-Api-Key") != "k" || header.Get("Anthropic-Beta") != "b" || header.Get("Anthropic-Version") != anthropic.Version {
		t.Error(header)
	}
	if body, _ := sent(t, anthropic.Client{Model: "m"}, &flow.Request{}); !strings.Contains(body, `"max_tokens":32000`) {
		t.Error(body)
	}
}

func TestStopReasons(t *testing.T) {
	for word, want := range map[string]string{
		"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
		"refusal": "blocked", "tool_use": "tool_calls", "pause_turn": "pause_turn",
	} {
		got, err := ask(t, begin()+block("0", `{"type":"text","text":"Hi"}`)+end(word))
		extra := `{"stop_reason":"` + word + `"}`
		if word == want {
			extra = ""
		}
		if err != nil || got.StopReason != want || string(got.Extra) != extra || got.Text() != "Hi" {
			t.Errorf("%s: %q, %s, %v", word, got.StopReason, got.Extra, err)
		}
	}
}

// ask asks a server that answers with the stream.
func ask(t *testing.T, stream string) (event.Message, error) {
	t.Helper()
	url := modeltest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { modeltest.Say(w, stream) })
	return modeltest.Ask(t, newModel(url, nil))
}

func TestBlocks(t *testing.T) {
	cited := event.Text("Hi")
	cited.Extra = []byte(`{"citations":[{"a":1},{"b":2}]}`)
	for name, c := range map[string]struct {
		stream string
		want   event.Part
	}{
		"cut input":  {block("0", `{"type":"tool_use","id":"c1","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"a"}`), event.ToolCall("c1", "f", []byte(`"{\"a"`))},
		"citations":  {block("0", `{"type":"text","text":"","citations":null}`, `{"type":"citations_delta","citation":{"a":1}}`, `{"type":"text_delta","text":"Hi"}`, `{"type":"citations_delta","citation":{"b":2}}`), cited},
		"compaction": {block("0", `{"type":"compaction","content":null}`, `{"type":"compaction_delta","content":"short"}`), event.Opaque("compaction", []byte(`{"type":"compaction","content":"short"}`))},
		"no stop":    {strings.Split(block("0", `{"type":"text","text":"Hi"}`), "event: content_block_stop")[0], event.Text("Hi")},
	} {
		got, err := ask(t, begin()+c.stream+end("max_tokens"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff([]event.Part{c.want}, got.Parts); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnErrorInTheMiddle(t *testing.T) {
	_, err := ask(t, begin()+block("0", `{"type":"text","text":"Hi"}`)+say(`{"type":"error","error":{"type":"overloaded_error","message":"Busy."}}`)+end("end_turn"))
	var e *flow.ModelError
	if !errors.As(err, &e) || e.Code != "overloaded_error" || e.Permanent() || e.Error() != "anthropic: overloaded_error: Busy." {
		t.Errorf("%v", err)
	}
}
