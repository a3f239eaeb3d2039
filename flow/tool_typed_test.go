package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
)

// reason is an enum.
type reason string

func (reason) JSONSchema() jsontext.Value {
	return jsontext.Value(`{"type":"string","enum":["late","damaged"]}`)
}

// percent has limits.
type percent int

func (*percent) JSONSchema() jsontext.Value {
	return jsontext.Value(`{"type":"integer","minimum":0,"maximum":100}`)
}

// code has a pattern.
type code string

func (code) JSONSchema() jsontext.Value {
	return jsontext.Value(`{"type":"string","pattern":"^[a-z]+$"}`)
}

type item struct {
	Name  string   `json:"name" jsonschema:"the name of the item"`
	Count int8     `json:"count,omitzero"`
	Tags  []string `json:"tags,omitzero"`
}

type refund struct {
	Order  int64            `json:"order"`
	Reason reason           `json:"reason"`
	Items  []item           `json:"items,omitempty"`
	Share  *percent         `json:"share,omitempty"`
	Proof  []byte           `json:"proof,omitempty"`
	Limits map[string]uint8 `json:"limits,omitempty"`
	Note   any              `json:"note,omitempty"`
	After  time.Duration    `json:"after,omitzero"`
	At     time.Time        `json:"at,omitzero"`
	Code   code             `json:"code,omitzero"`
	Raw    jsontext.Value   `json:"raw,omitempty"`
}

// call runs a tool with arguments.
func call(t *testing.T, tool flow.ToolSpec, arguments string) (string, error) {
	t.Helper()
	parts, err := tool.Run(t.Context(), event.Part{Type: event.ToolCallPart, CallID: "c", Name: tool.Name, Arguments: []byte(arguments)})
	if err != nil {
		return "", err
	}
	if len(parts) != 1 || parts[0].Type != event.TextPart {
		t.Fatalf("content %v", parts)
	}
	return parts[0].Text, nil
}

func TestTool(t *testing.T) {
	tool := flow.Tool("refund", "Refund an order.", func(_ context.Context, in refund) (refund, error) { return in, nil })
	want := `{"type":"object","properties":{"order":{"type":"integer"},"reason":{"type":"string","enum":["late","damaged"]},` +
		`"items":{"type":["null","array"],"items":{"type":"object","properties":{"name":{"type":"string","description":"the name of the item"},` +
		`"count":{"type":"integer","minimum":-128,"maximum":127},"tags":{"type":["null","array"],"items":{"type":"string"}}},"required":["name"],"additionalProperties":false}},` +
		`"share":{"type":["null","integer"],"minimum":0,"maximum":100},"proof":{"type":"string","contentEncoding":"base64"},` +
		`"limits":{"type":"object","additionalProperties":{"type":"integer","minimum":0,"maximum":255}},"note":{"description":"any JSON value"},"after":{"type":"integer"},"at":{"type":"string"},"code":{"type":"string","pattern":"^[a-z]+$"},"raw":{"description":"any JSON value"}},` +
		`"required":["order","reason"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(tool.Parameters)); diff != "" || tool.Name != "refund" || tool.Description != "Refund an order." {
		t.Error(diff)
	}
	for _, arguments := range []string{
		`{"order":9007199254740993,"reason":"late"}`,
		`{"order":-9223372036854775808,"reason":"damaged","items":[{"name":"a","count":127,"tags":["x"]}],"share":100,"proof":"AAE=",` +
			`"limits":{"a":255},"note":{"n":[12345678901234567890.1230]},"after":5,"at":"2026-01-02T03:04:05Z","raw":[9007199254740993,1.50]}`,
	} {
		if got, err := call(t, tool, arguments); err != nil || got != arguments {
			t.Errorf("%s\ngives %s, %v", arguments, got, err)
		}
	}
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	ran := false
	tool := flow.Tool("refund", "", func(context.Context, refund) (string, error) { ran = true; return "", nil })
	long := strings.Repeat("é", 1<<20)
	for _, c := range []struct{ arguments, want string }{
		{``, `order: missing, expected integer; reason: missing, expected string`},
		{`{"reason":"late"}`, `order: missing, expected integer`},
		{`{"order":"12","reason":"late"}`, `order: expected integer, got string "12"`},
		{`{"order":1.5,"reason":"late"}`, `order: expected integer, got number 1.5`},
		{`{"order":null,"reason":"late"}`, `order: expected integer, got null`},
		{`{"order":1,"reason":"lost"}`, `reason: expected one of "late", "damaged", got string "lost"`},
		{`{"order":1,"reason":"late","colour":1}`, `colour: unknown member, expected after, at, code, items, limits, note, order, proof, raw, reason, share`},
		{`{"order":1,"reason":"late","items":[{"name":"a"},{"name":5,"tags":[true]}]}`, `items[1].name: expected string, got integer 5; items[1].tags[0]: expected string, got boolean`},
		{`{"order":1,"reason":"late","items":{}}`, `items: expected null or array, got object`},
		{`{"order":1,"reason":"late","limits":{"a":"b"}}`, `limits.a: expected integer, got string "b"`},
		{`{"order":1,"reason":"late","share":101}`, `share: expected at most 100, got integer 101`},
		{`{"order":1,"reason":"late","items":[{"name":"a","count":300}]}`, `items[0].count: expected at most 127, got integer 300`},
		{`{"order":92233720368547758070,"reason":"late"}`, `order: 92233720368547758070`},
		{`{"order":1e400,"reason":"late"}`, `order: expected integer, got number 1e400`},
		{`{"order":1,"reason":"late","at":"today"}`, `at: parsing time "today"`},
		{`{"order":1,"reason":"late","proof":"%"}`, `proof: illegal base64`},
		{`{"order":1,"reason":"late","code":"A"}`, "code: pattern: \"A\" does not match"},
		{`[]`, `arguments: expected object, got array`},
		{`null`, `arguments: expected object, got null`},
		{`"{\"order\":"`, `not valid JSON: `},
		{`{"order":1,"order":2,"reason":"late"}`, `not valid JSON: `},
		{"{\"order\":1,\"reason\":\"\xff\"}", `not valid JSON: `},
		{`{"order":1,"reason":"` + long + `"}`, `reason: expected one of "late", "damaged", got string "éé`},
		{`{"order":1,"reason":"late","` + long + `":1}`, `: unknown member`},
		{`{"order":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `,"reason":"late"}`, `order: expected integer, got array`},
		{`{"order":` + strings.Repeat("[", 1<<20), `not valid JSON: `},
		{`{"order":1,"reason":"late","items":[` + strings.Repeat(`5,`, 1<<18) + `5]}`, `items[7]: expected object, got integer 5. `},
	} {
		_, err := call(t, tool, c.arguments)
		var fits interface{ Permanent() bool }
		if !errors.As(err, &fits) || !fits.Permanent() || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2000 {
			t.Errorf("%.200s\ngives  %.2000v\nwithout %s", c.arguments, err, c.want)
		}
	}
	if ran {
		t.Error("the function ran")
	}
}

// No arguments at all can make a tool fail in another way than with an error for the model.
func FuzzArguments(f *testing.F) {
	f.Add([]byte(`{"order":1,"reason":"late","items":[{"name":"a"}],"note":{"a":[1e9]}}`))
	f.Add([]byte(`"{"`))
	tool := flow.Tool("refund", "", func(_ context.Context, in refund) (refund, error) { return in, nil })
	f.Fuzz(func(t *testing.T, arguments []byte) {
		parts, err := tool.Run(t.Context(), event.Part{Arguments: arguments})
		var e interface{ Permanent() bool }
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		if err == nil {
			if _, err := call(t, tool, parts[0].Text); err != nil {
				t.Fatalf("the result %s of %s does not fit: %v", parts[0].Text, arguments, err)
			}
		}
	})
}

func TestResults(t *testing.T) {
	type none struct{}
	image := event.Part{Type: event.ImagePart, URL: "https://example.org/a.png"}
	for name, c := range map[string]struct {
		tool flow.ToolSpec
		want []event.Part
	}{
		"text":  {flow.Tool("f", "", func(context.Context, none) (string, error) { return "a\xffb", nil }), []event.Part{event.Text("a\ufffdb")}},
		"named": {flow.Tool("f", "", func(context.Context, none) (reason, error) { return "late", nil }), []event.Part{event.Text("late")}},
		"JSON": {flow.Tool("f", "", func(context.Context, none) (map[string]any, error) {
			return map[string]any{"b": "\xff", "a": json.Number("1.50")}, nil
		}), []event.Part{event.Text(`{"a":1.50,"b":"` + "\ufffd" + `"}`)}},
		"nothing": {flow.Tool("f", "", func(context.Context, map[string]any) (any, error) { return nil, nil }), []event.Part{event.Text(`null`)}},
		"part":    {flow.Tool("f", "", func(context.Context, *none) (event.Part, error) { return image, nil }), []event.Part{image}},
		"parts":   {flow.Tool("f", "", func(context.Context, none) ([]event.Part, error) { return []event.Part{image, image}, nil }), []event.Part{image, image}},
	} {
		got, err := c.tool.Run(t.Context(), event.ToolCall("c", "f", nil))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", name, err, diff)
		}
	}
	failed := errors.New("no such order")
	tool := flow.Tool("f", "", func(context.Context, none) (string, error) { return "", failed })
	if _, err := call(t, tool, `{}`); err != failed {
		t.Errorf("Run = %v", err)
	}
	if _, err := call(t, flow.Tool("f", "", func(context.Context, none) (float64, error) { return math.NaN(), nil }), `{}`); err == nil {
		t.Error("NaN is a result")
	}
}

func TestTypesWithoutASchema(t *testing.T) {
	type cycle struct{ Next []*cycle }
	for name, err := range map[string]error{
		"channel":    newTool[struct{ C chan int }](),
		"function":   newTool[struct{ F func() }](),
		"complex":    newTool[map[string]complex128](),
		"cycle":      newTool[cycle](),
		"keys":       newTool[map[int]string](),
		"no object":  newTool[string](),
		"list":       newTool[[]int](),
		"any":        newTool[any](),
		"bad schema": newTool[struct{ B badSchema }](),
		"no type":    newTool[struct{ B noType }](),
		"bad tag": newTool[struct {
			A int `jsonschema:"WORD=x"`
		}](),
		"bad pattern": newTool[struct{ B badPattern }](),
	} {
		if err == nil || !strings.Contains(err.Error(), `Tool "f"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a tool without name and function")
		}
	}()
	flow.Tool[struct{}, string]("", "", nil)
}

func TestOptionsOfATool(t *testing.T) {
	f := func(context.Context, struct{}) (string, error) { return "", nil }
	tool := flow.Tool("pay", "Pays.", f, flow.Once, flow.Review("Pay?"), flow.Retry{Attempts: 3})
	asked, err := tool.Review(t.Context(), event.Part{})
	if err != nil || asked.Prompt != "Pay?" || tool.Class != event.EffectUnsafeOnce || tool.Retry.Attempts != 3 {
		t.Fatalf("%v %+v %+v", err, asked, tool)
	}
}

type (
	badSchema  string
	badPattern string
	noType     string
)

func (noType) JSONSchema() jsontext.Value { return jsontext.Value(`{"enum":["a"]}`) }

func (badSchema) JSONSchema() jsontext.Value { return jsontext.Value(`{"type":5}`) }
func (badPattern) JSONSchema() jsontext.Value {
	return jsontext.Value(`{"type":"string","pattern":"("}`)
}

// newTool returns the panic of a tool without a schema.
func newTool[In any]() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	flow.Tool("f", "", func(context.Context, In) (string, error) { return "", nil })
	return nil
}

func TestAToolIsCalledConcurrently(t *testing.T) {
	tool := flow.Tool("f", "", func(_ context.Context, in refund) (string, error) { return fmt.Sprint(in.Order), nil })
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			if got, err := call(t, tool, fmt.Sprintf(`{"order":%d,"reason":"late"}`, n)); err != nil || got != fmt.Sprint(n) {
				t.Errorf("%d: %q, %v", n, got, err)
			}
			if _, err := call(t, tool, fmt.Sprintf(`{"order":"%d"}`, n)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(`got string "%d"`, n)) {
				t.Errorf("%d: %v", n, err)
			}
		})
	}
	all.Wait()
}
