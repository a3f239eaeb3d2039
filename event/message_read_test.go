package event

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/line"
)

// unmarshalMessage agrees with json.Unmarshal about messages, and about messages with one
// byte removed, repeated or changed.
func TestUnmarshalMessageIsJSONUnmarshal(t *testing.T) {
	for _, message := range []string{
		`{"role":"user","parts":[{"type":"text","text":"a\nb \u00e9 \ud83d\ude00 é"}]}`,
		`{"role":"assistant","provider":"p","model":"m","response_id":"r","stop_reason":"s","group":"g","input_id":"i",` +
			`"usage":{"input_tokens":1,"output_tokens":22,"cache_read_tokens":3,"cache_write_tokens":4,"reasoning_tokens":5,"extra":{"x":1}},` +
			`"parts":[{"type":"reasoning","id":"d","text":"t","signature":"s","encrypted":"e","extra":{"y":[1,2]}},` +
			`{"type":"tool_call","call_id":"c","name":"n","arguments":{"a":"b"}}],"extra":{"z":null}}`,
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"c","name":"n","content":[{"type":"text","text":""}],"is_error":true,"interrupted":false}]}`,
		`{"role":"user","parts":[{"type":"image","media_type":"i/p","data":"aGk="},{"type":"new","x":1},{"text":"t","type":"text"}],"parts2":null}`,
		`{"role":"user","parts":[],"extra":null,"usage":{"input_tokens":1e2}}`,
		`{"role":"user","parts":[{}]}`,
	} {
		checkUnmarshal(t, message)
		checkSkim(t, message)
		for i := range message {
			before, after := message[:i], message[i+1:]
			for _, with := range []string{"", message[i:i+1] + message[i:i+1], "0", `"`, "}", "]", "n", "\x01", "\xff", " "} {
				checkUnmarshal(t, before+with+after)
				checkSkim(t, before+with+after)
			}
		}
	}
}

// unmarshalMessage reads or refuses each member that a message, its usage and its parts
// can have.
func TestUnmarshalMessageKnowsEveryMember(t *testing.T) {
	m := Message{Role: User, Parts: []Part{{Type: TextPart}}}
	checked := 0
	check := func(name string) {
		data, err := json.Marshal(&m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkUnmarshal(t, string(data))
		checkSkim(t, string(data))
		checked++
	}
	eachMember(t, reflect.ValueOf(&m).Elem(), check)
	eachMember(t, reflect.ValueOf(&m.Parts[0]).Elem(), check)
	if checked < 25 {
		t.Errorf("checked only %d members", checked)
	}
}

// eachMember calls f after it has set one zero field of v, or of a struct in v.
func eachMember(t *testing.T, v reflect.Value, f func(name string)) {
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		if v.Type().Field(i).Tag.Get("json") == "-" || !field.CanSet() {
			continue
		}
		if field.Kind() == reflect.Struct {
			eachMember(t, field, f)
			continue
		}
		if !field.IsZero() {
			continue
		}
		switch field.Interface().(type) {
		case jsontext.Value:
			field.SetBytes([]byte(`{"a":1}`))
		case []byte:
			field.SetBytes([]byte("bytes"))
		case []Part:
			field.Set(reflect.ValueOf([]Part{Text("t")}))
		default:
			switch field.Kind() {
			case reflect.String:
				field.SetString("x")
			case reflect.Int64:
				field.SetInt(7)
			case reflect.Bool:
				field.SetBool(true)
			default:
				t.Fatalf("no value for %s, a %s", name, field.Type())
			}
		}
		f(name)
		field.SetZero()
	}
}

func checkUnmarshal(t *testing.T, data string) {
	t.Helper()
	var got, want Message
	text := []byte(data)
	err, wrong := unmarshalMessage(text, &got), json.Unmarshal([]byte(data), &want)
	clear(text) // the message is a copy
	if (err == nil) != (wrong == nil) || wrong == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: %+v, %v; want %+v, %v", data, got, err, want, wrong)
	}
	if wrong != nil && !bytes.Equal([]byte(err.Error()), []byte(wrong.Error())) {
		t.Fatalf("%s: %v, want %v", data, err, wrong)
	}
}

// A message without its texts has the same facts, and is read only if its JSON is compact.
func checkSkim(t *testing.T, data string) {
	t.Helper()
	skimmed, sure := skimMessage([]byte(data))
	if !sure {
		return
	}
	var m Message
	if err := errors.Join(json.Unmarshal([]byte(data), &m), line.CheckData([]byte(data))); err != nil {
		t.Fatalf("%s was skimmed: %v", data, err)
	}
	got, want := factsOf(skimmed), factsOf(m)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: %+v without its texts; want %+v", data, got, want)
	}
}

// A message that this package has encoded is skimmed, even if it breaks a rule.
func TestSkimMessage(t *testing.T) {
	for _, m := range []Message{
		{Role: User, Parts: []Part{Text("a\nb é")}},
		{Role: Assistant, Parts: []Part{Text("")}},
		{Role: Assistant, Parts: []Part{Reasoning("", "signature"), Text("t")}, Group: "g", ResponseID: "r"},
		{Role: Assistant, Parts: []Part{ToolCall("1", "n", jsontext.Value(`{"a":1}`)), ToolCall("1", "n", nil)}},
		{Role: Tool, Parts: []Part{Text("no result")}},
		{Role: "new", Extra: jsontext.Value(`[]`)},
	} {
		data, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		if _, sure := skimMessage(data); !sure {
			t.Errorf("%s was not skimmed", data)
		}
		checkSkim(t, string(data))
		if _, sure := skimMessage(append(data, ' ')); sure {
			t.Errorf("%s was skimmed with white space after it", data)
		}
	}
}
