package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/internal/httpmodel/modeltest"
	"github.com/convlog/convlog/flow/openai"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/internal/rawjson"
)

const key = "secret-key"

// orderName is the name of the tool shop:order in a request.
var orderName = modelapi.OpenAIToolName("shop:order")

func newModel(url string, client *http.Client) flow.Model {
	return &openai.Client{BaseURL: url, Key: key, Model: "m", HTTP: client, Now: func() time.Time { return modeltest.Now }}
}

// chunk is an event with a delta.
func chunk(delta string) string {
	return `data: {"id":"r1","object":"chat.completion.chunk","created":5,"model":"m-1","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
}

func finish(reason string) string {
	return `data: {"id":"r1","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n"
}

const usage = `{"prompt_tokens":20,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":4}}`

var stream = chunk(`{"role":"assistant","content":"","reasoning_content":"H"}`) + chunk(`{"reasoning_content":"m."}`) +
	chunk(`{"content":"I lo"}`) + chunk(`{"content":"ok. é\ud83d\ude00"}`) +
	chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"`+orderName+`","arguments":""}}]}`) +
	chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"n\":90071"}}]}`) +
	chunk(`{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"refund","arguments":"{}"}}]}`) +
	chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"99254740993}"}}]}`) +
	finish("tool_calls") +
	`data: {"id":"r1","model":"m-1","choices":[],"usage":` + usage + `}` + "\n\ndata: [DONE]\n\n"

var whole = `{"id":"r1","object":"chat.completion","created":5,"model":"m-1","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",
	"content":"I look. é😀","reasoning_content":"Hm.","tool_calls":[
	{"id":"c1","type":"function","function":{"name":"` + orderName + `","arguments":"{\"n\":9007199254740993}"}},
	{"id":"c2","type":"function","function":{"name":"refund","arguments":"{}"}}]}}],"usage":` + usage + `}`

func TestModel(t *testing.T) {
	modeltest.Run(t, modeltest.Suite{
		New: newModel, Stream: stream, Whole: whole, Key: key,
		Fixed: []string{`{"messages":[]}`, `{"stream":false}`, `{"model":"x"}`, `{"n":2}`},
		Broken: []string{
			"data: [DONE]\n\n", chunk(`{"content":"Hi"}`) + "data: [DONE]\n\n", "data: {}\n\n", chunk(`5`), chunk(`{"tool_calls":[5]}`),
			`data: {"choices":{}}` + "\n\n", `data: {"choices":[5]}` + "\n\n", "data: {\"a\":1,\"a\":2}\n\n",
		},
		Want: event.Message{
			Role: event.Assistant, Provider: "openai", Model: "m-1", ResponseID: "r1", StopReason: "tool_calls",
			Parts: []event.Part{
				event.Reasoning("Hm.", ""), event.Text("I look. é😀"),
				event.ToolCall("c1", "shop:order", []byte(`{"n":9007199254740993}`)), event.ToolCall("c2", "refund", nil),
			},
			Usage: event.Usage{
				InputTokens: 12, OutputTokens: 9, CacheReadTokens: 8, ReasoningTokens: 4,
				Extra: []byte(`{"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":4}}`),
			},
			Extra: []byte(`{"response":{"created":5}}`),
		},
		Check: func(body []byte) error {
			messages, _, err := rawjson.Lookup(body, "messages")
			if err != nil {
				return err
			}
			return modelapi.CheckChat(append(append(jsontext.Value(`{"messages":`), messages...), '}'))
		},
	})
}

// generate asks a server that answers with the stream.
func generate(t *testing.T, stream string) (flow.Response, error) {
	t.Helper()
	url := modeltest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { modeltest.Say(w, stream) })
	return newModel(url, nil).Generate(t.Context(), modeltest.Request(), func(eventlog.Delta) {})
}

// sent returns the body of a request.
func sent(t *testing.T, c openai.Client, r *flow.Request) (body string, header http.Header) {
	t.Helper()
	c.BaseURL = modeltest.Serve(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/api/chat/completions" || q.URL.RawQuery != "version=1" {
			t.Errorf("asked at %v", q.URL)
		}
		raw, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		body, header = string(raw), q.Header
		modeltest.Say(w, stream)
	}) + "/api?version=1"
	if _, err := c.Generate(t.Context(), r, func(eventlog.Delta) {}); err != nil {
		t.Fatal(err)
	}
	return body, header
}

func TestBody(t *testing.T) {
	r := &flow.Request{
		Model: "other", Output: []byte(`{"type":"object"}`), Tools: []flow.ToolSpec{{Name: "f", Description: "Do it."}},
		Parameters: []byte(`{"temperature":0.70,"seed":9007199254740993,"stream_options":null,"tools":[{"type":"x"}]}`),
	}
	body, header := sent(t, openai.Client{Key: "k", Model: "m", Header: http.Header{"X-Title": {"t"}}}, r)
	want := `{"model":"other","messages":[],"tools":[{"type":"function","function":{"name":"f","description":"Do it.","parameters":{"type":"object","properties":{}}}},{"type":"x"}],` +
		`"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}},"stream":true,"temperature":0.70,"seed":9007199254740993}`
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if header.Get("Authorization") != "Bearer k" || header.Get("X-Title") != "t" {
		t.Error(header)
	}
	if _, header := sent(t, openai.Client{Model: "m"}, &flow.Request{}); header.Get("Authorization") != "" {
		t.Error(header)
	}
	if _, err := (&openai.Client{}).Generate(t.Context(), &flow.Request{}, nil); err == nil || !strings.Contains(err.Error(), "model") {
		t.Errorf("without a model: %v", err)
	}
}

// Servers differ in the details of a stream.
func TestOtherServers(t *testing.T) {
	call := func(id, arguments string) event.Part { return event.ToolCall(id, "f", []byte(arguments)) }
	refused := event.Text("No.")
	refused.Extra = []byte(`{"type":"refusal"}`)
	for _, c := range []struct {
		name   string
		stream string
		want   []event.Part
		stop   string
		extra  string
	}{
		{name: "no DONE", stream: chunk(`{"content":"Hi"}`) + finish("stop"), want: []event.Part{event.Text("Hi")}, stop: "stop"},
		{name: "too long", stream: chunk(`{"content":"Hi"}`) + finish("length"), want: []event.Part{event.Text("Hi")}, stop: "length"},
		{name: "blocked", stream: finish("content_filter"), stop: "blocked", extra: `{"stop_reason":"content_filter"}`},
		{name: "other word", stream: chunk(`{"content":"Hi"}`) + finish("eos"), want: []event.Part{event.Text("Hi")}, stop: "eos"},
		{name: "refusal", stream: chunk(`{"refusal":"N"}`) + chunk(`{"refusal":"o."}`) + finish("stop"), want: []event.Part{refused}, stop: "stop"},
		{name: "reasoning", stream: chunk(`{"reasoning":"H"}`) + chunk(`{"reasoning":"m"}`) + chunk(`{"content":"Hi"}`) + finish("stop"), want: []event.Part{event.Reasoning("Hm", ""), event.Text("Hi")}, stop: "stop"},
		{name: "reasoning twice", stream: chunk(`{"reasoning":"Hm","reasoning_content":"Hm"}`) + chunk(`{"content":"Hi"}`) + finish("stop"), want: []event.Part{event.Reasoning("Hm", ""), event.Text("Hi")}, stop: "stop"},
		{name: "text first", stream: chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]}`) + chunk(`{"content":"Hi"}`) + chunk(`{"reasoning":"Hm"}`) + finish("tool_calls"), want: []event.Part{call("c1", `{}`), event.Text("Hi"), event.Reasoning("Hm", "")}, stop: "tool_calls"},
		{name: "calls without index", stream: chunk(`{"tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{\"a\":"}}]}`) + chunk(`{"tool_calls":[{"function":{"name":"f","arguments":"1}"}}]}`) + chunk(`{"tool_calls":[{"id":"c2","function":{"name":"f","arguments":"{}"}}]}`) + finish("tool_calls"), want: []event.Part{call("c1", `{"a":1}`), call("c2", `{}`)}, stop: "tool_calls"},
		{name: "calls with one index", stream: chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}},{"index":0,"id":"c2","function":{"name":"f","arguments":"{}"}}]}`) + finish("function_call"), want: []event.Part{call("c1", `{}`), call("c2", `{}`)}, stop: "tool_calls", extra: `{"stop_reason":"function_call"}`},
		{name: "calls without id", stream: chunk(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":{"a":1}}}]}`) + finish("tool_calls"), want: []event.Part{call("r1_0", `{"a":1}`)}, stop: "tool_calls"},
		{name: "cut arguments", stream: chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a"}}]}`) + finish("length"), want: []event.Part{call("c1", `"{\"a"`)}, stop: "length"},
		{name: "sparse index", stream: chunk(`{"tool_calls":[{"index":999999999999,"id":"c1","function":{"name":"f","arguments":""}}]}`) + finish("tool_calls"), want: []event.Part{call("c1", `{}`)}, stop: "tool_calls"},
		{name: "half characters", stream: chunk(`{"content":"a\ud83d"}`) + chunk(`{"content":"\ude00\u0000"}`) + finish("stop"), want: []event.Part{event.Text("a\ufffd\ufffd\x00")}, stop: "stop"},
		{name: "invalid UTF-8", stream: chunk(`{"content":"a`+"\xff"+`b"}`) + finish("stop"), want: []event.Part{event.Text("a\ufffdb")}, stop: "stop"},
		{name: "message as chunk", stream: strings.ReplaceAll(chunk(`{"role":"assistant","content":"Hi"}`), `"delta"`, `"message"`) + finish("stop"), want: []event.Part{event.Text("Hi")}, stop: "stop"},
		{name: "second choice", stream: chunk(`{"content":"Hi"}`) + strings.ReplaceAll(chunk(`{"content":"Ho"}`), `"index":0`, `"index":1`) + finish("stop"), want: []event.Part{event.Text("Hi")}, stop: "stop"},
		{name: "blocks", stream: chunk(`{"content":[{"type":"text","text":"H"},{"type":"x"}]}`) + chunk(`{"content":[{"type":"text","text":"i"},{"type":"y"}]}`) + finish("stop"), want: []event.Part{event.Text("Hi")}, stop: "stop", extra: `{"content_blocks":[{"type":"x"},{"type":"y"}]}`},
		{name: "unknown members", stream: chunk(`{"content":"Hi","notes":[1],"o":{"a":1,"l":[1]}}`) + chunk(`{"notes":[2],"o":{"b":2,"l":[2]},"nothing":null}`) + finish("stop"), want: []event.Part{event.Text("Hi")}, stop: "stop", extra: `{"notes":[1,2],"o":{"a":1,"l":[1,2],"b":2}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := modeltest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				modeltest.Say(w, strings.ReplaceAll(c.stream, `"created":5,`, ""))
			})
			got, err := modeltest.Ask(t, newModel(url, nil))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Parts); diff != "" || got.StopReason != c.stop || string(got.Extra) != c.extra {
				t.Errorf("stop reason %q, extra %s, %s", got.StopReason, got.Extra, diff)
			}
		})
	}
}

func TestALongStream(t *testing.T) {
	long := strings.Repeat("0123456789", 1<<19)
	got, err := generate(t, chunk(`{"content":"`+long+`"}`)+chunk(`{"content":"."}`)+finish("stop"))
	if err != nil || got.Message.Text() != long+"." {
		t.Errorf("%d bytes, %v", len(got.Message.Text()), err)
	}
	_, err = generate(t, strings.Repeat(": "+long+"\n", 13))
	if err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("an answer of 65 MB: %v", err)
	}
}

func TestASilentServer(t *testing.T) {
	url := modeltest.Serve(t, func(w http.ResponseWriter, q *http.Request) {
		modeltest.Say(w, chunk(`{"content":"Hi"}`))
		w.(http.Flusher).Flush()
		<-q.Context().Done()
	})
	c := &openai.Client{BaseURL: url, Model: "m", Silence: 20 * time.Millisecond}
	_, err := c.Generate(t.Context(), modeltest.Request(), func(eventlog.Delta) {})
	var e *flow.ModelError
	if !errors.As(err, &e) || e.Permanent() || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing for too long") {
		t.Errorf("Generate = %v", err)
	}
}

func TestCost(t *testing.T) {
	for told, want := range map[string]event.Cost{`0.00014`: event.Dollar * 14 / 100_000, `-1`: 0, `"x"`: 0, `null`: 0} {
		got, err := generate(t, chunk(`{"content":"Hi"}`)+finish("stop")+`data: {"choices":[],"usage":{"prompt_tokens":1,"cost":`+told+`}}`+"\n\n")
		if err != nil || got.Cost != want {
			t.Errorf("cost %s is %v, %v", told, got.Cost, err)
		}
	}
}
