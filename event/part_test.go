package event

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// partSamples together have every member of each type of part.
var partSamples = map[PartType][]string{
	TextPart:       {`{"type":"text","id":"i","text":"t","extra":{"z":1}}`},
	ReasoningPart:  {`{"type":"reasoning","id":"i","text":"t","signature":"s","encrypted":"e","redacted":true,"extra":{"z":1}}`},
	ImagePart:      bodySamples("image"),
	AudioPart:      bodySamples("audio"),
	DocumentPart:   bodySamples("document"),
	ToolCallPart:   {`{"type":"tool_call","id":"i","call_id":"1","name":"n","arguments":{"b":1.0,"a":"\u0061"},"extra":{"z":1}}`},
	ToolResultPart: {`{"type":"tool_result","id":"i","call_id":"1","name":"n","content":[{"type":"text","text":"t"}],"is_error":true,"interrupted":true,"extra":{"z":1}}`},
	ServerToolCallPart: {
		`{"type":"server_tool_call","id":"i","call_id":"1","name":"n","arguments":"[","extra":{"z":1}}`},
	ServerToolResultPart: {
		`{"type":"server_tool_result","id":"i","call_id":"1","name":"n","content":[{"type":"hologram","x":1}],"is_error":true,"extra":{"z":1}}`},
	OpaquePart: {`{"type":"opaque","id":"i","kind":"k","value":null,"extra":{"z":1}}`},
}

func bodySamples(t string) []string {
	return []string{
		`{"type":"` + t + `","id":"i","media_type":"m","name":"n","blob":{"blob":"` + sampleDigest + `","bytes":3},"extra":{"z":1}}`,
		`{"type":"` + t + `","media_type":"m","url":"u"}`,
		`{"type":"` + t + `","media_type":"m","data":"aGk="}`,
	}
}

func TestPartsRoundTripWithTheMembersOfTheFormat(t *testing.T) {
	_, rows, _ := formatTables(t)
	for name, row := range rows {
		var data []jsontext.Value
		for _, sample := range partSamples[name] {
			data = append(data, jsontext.Value(sample))
			var p Part
			if err := json.Unmarshal([]byte(sample), &p); err != nil {
				t.Errorf("%s: %v", sample, err)
			}
			if err := p.check(); err != nil {
				t.Errorf("%s: %v", sample, err)
			}
			if p.Raw != nil {
				t.Errorf("%s: kept raw", sample)
			}
			got, err := json.Marshal(&p, jsontext.PreserveRawStrings(true))
			if err != nil || string(got) != sample {
				t.Errorf("got %s, %v\nwant %s", got, err, sample)
			}
		}
		if diff := cmp.Diff(sorted(append(row.names(), "type", "id", "extra")), memberNames(t, data)); diff != "" {
			t.Errorf("%s: members differ (-docs/FORMAT.md +sample):\n%s", name, diff)
		}
	}
}

func TestPartsOfUnknownTypeStayAsTheyAre(t *testing.T) {
	for _, raw := range []string{
		`{"type":"hologram","text":7,"content":"x","a":1.0}`,
		`{"b":[1E2],"type":"hologram","a":"\u0061"}`,
		`{"type":"texture"}`,
		`{"type":"a type whose name is longer than that of any that is known","x":1}`,
	} {
		data := `{"role":"user","parts":[{"type":"text","text":"a"},` + raw + `,{"type":"text","text":"b"}]}`
		e := Event{Type: MessageAdded, Data: jsontext.Value(data)}
		m, _, err := Decode[Message](&e)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := string(m.Parts[1].Raw); got != raw {
			t.Errorf("raw is %s, want %s", got, raw)
		}
		if again := New(m); string(again.Data) != data {
			t.Errorf("got %s\nwant %s", again.Data, data)
		}
	}
}

func TestPartReadsAnyMemberOrder(t *testing.T) {
	for _, data := range []string{
		`{"text":"hi","type":"text"}`,
		`{ "type" : "text", "text" : "hi" }`,
		`{"ty\u0070e":"text","text":"hi"}`,
		`{"type":"te\u0078t","text":"hi"}`,
	} {
		var parts []Part
		if err := json.Unmarshal([]byte(`[`+data+` , `+data+`]`), &parts); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if diff := cmp.Diff([]Part{Text("hi"), Text("hi")}, parts); diff != "" {
			t.Errorf("%s: differs:\n%s", data, diff)
		}
	}
}

func TestPartRefusesWhatIsNoPart(t *testing.T) {
	for _, data := range []string{`"text"`, `null`, `[]`, `{"type":7}`, `{"type":"text","text":7}`, `{"type":"text","type":"text"}`,
		`{"text":7,"type":"text"}`, `{"type":"image","data":"?"}`, `{"type":"tool_result","call_id":"1","content":"text"}`} {
		var p Part
		if err := json.Unmarshal([]byte(data), &p); err == nil && p.check() == nil {
			t.Errorf("%s: read as %+v", data, p)
		}
	}
}

func TestPartConstructors(t *testing.T) {
	body := BlobRef{Blob: sampleDigest, Bytes: 3}
	for _, p := range []Part{
		Text(""), Reasoning("", ""), Image("image/png", body), {Type: AudioPart, MediaType: "audio/wav", Blob: body}, {Type: DocumentPart, Name: "n", MediaType: "text/plain", Blob: body},
		ToolCall("1", "n", nil), ToolResult("1", "n"), {Type: ToolResultPart, CallID: "1", Name: "n", IsError: true, Interrupted: true}, Opaque("k", nil),
	} {
		if err := p.check(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestPartsNeedTheirBlobs(t *testing.T) {
	a, b := DigestOf([]byte("a")), DigestOf([]byte("b"))
	m := Message{Role: Tool, Parts: []Part{
		Image("image/png", BlobRef{Blob: a, Bytes: 1}),
		ToolResult("1", "n", Text("x"), Image("image/png", BlobRef{Blob: b, Bytes: 1}), Image("image/png", BlobRef{Blob: a, Bytes: 1})),
	}}
	want := []Digest{a, b}
	slices.Sort(want)
	e := New(m)
	if diff := cmp.Diff(want, e.Blobs()); diff != "" {
		t.Errorf("blobs differ:\n%s", diff)
	}
	m.Parts[0].Blob.Blob = "sha256:short"
	if err := Validate(m); !errors.Is(err, ErrInvalidBlob) {
		t.Errorf("malformed digest: %v", err)
	}
}
