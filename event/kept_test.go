package event

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/internal/rawjson"
)

func TestKept(t *testing.T) {
	for _, test := range []struct {
		name       Type
		data, want string
	}{
		{MessageAdded, `{"group":"g","role":"tool","response_id":"r","usage":{"input_tokens":1,"extra":{"secret":1},"unknown":2},"parts":[` +
			`{"type":"text","text":"secret"},{"type":"tool_call","call_id":"1","name":"secret"},{"type":"server_tool_call","call_id":"2"},` +
			`{"type":"tool_result","call_id":"3","content":[{"type":"tool_call","call_id":"9"}]},{"type":"tool_result","call_id":"\u0034"},` +
			`{"type":"hologram","call_id":{"secret":1}}],"extra":{"secret":1}}`,
			`{"role":"tool","response_id":"r","group":"g","usage":{"input_tokens":1,"unknown":2},"calls":["1"],"results":["3","\u0034"]}`},
		{MessageAdded, `{"role":"user","calls":["secret"],"results":["secret"],"parts":[]}`, `{"role":"user"}`},
		{MessageAdded, `{"role":"user"}`, `{"role":"user"}`},
		{CompactionTriggered, `{"entries":[{"seq":3},{"message":{"role":"user"}},{"seq":4,"secret":1}],"summary":"secret","covers":{"from":1,"to":5}}`,
			`{"covers":{"from":1,"to":5},"entries":[{"seq":3},{"seq":4}]}`},
		{CompactionTriggered, `{"entries":[{"message":{"role":"user"}}]}`, `{}`},
		{"message_added/2", `{"role":"user"}`, `{}`},
		{"codex:turn_context", `{"role":"user"}`, `{}`},
		{"note", `[1]`, `{}`},
	} {
		e := Event{Type: test.name, Data: jsontext.Value(test.data)}
		got, err := keptOf(&e)
		if err != nil || string(got) != test.want {
			t.Errorf("%s %s:\nkept %s, %v\nwant %s", test.name, test.data, got, err, test.want)
		}
	}
}

func TestKeptHasTheMembersOfTheFormat(t *testing.T) {
	types, _, _ := formatTables(t)
	for name, row := range types {
		if row.fixed {
			continue
		}
		var kept []jsontext.Value
		for _, data := range samplesOf(name) {
			e := Event{Type: name, Data: data}
			value, err := keptOf(&e)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			kept = append(kept, value)
		}
		want := row.kept
		if name == MessageAdded { // the sample has no calls
			want = want[:len(want)-2]
		}
		if diff := cmp.Diff(sorted(want), memberNames(t, kept)); diff != "" {
			t.Errorf("%s: kept members differ (-docs/FORMAT.md +kept):\n%s", name, diff)
		}
	}
}

func TestKeptOfMisshapenDataIsAnError(t *testing.T) {
	for _, data := range []string{`[]`, `{"parts":7}`, `{"parts":[7]}`} {
		e := Event{Type: MessageAdded, Data: jsontext.Value(data)}
		if kept, err := keptOf(&e); err == nil {
			t.Errorf("%s: kept %s", data, kept)
		}
	}
}

// keptOf returns the members that redaction keeps of a payload.
func keptOf(e *Event) (jsontext.Value, error) {
	members, err := e.structure()
	return rawjson.Object(members), err
}

// No kept member is a digest of content: a digest shows whether a guess is right. The
// hash of an event depends on its salt, and the digest of kept members on these only.
func TestNoKeptMemberIsADigestOfContent(t *testing.T) {
	harmless := map[string]bool{"session_forked.hash": true, "projection_snapshotted.hash": true, "redacted.kept": true}
	for _, name := range Types() {
		for _, data := range samplesOf(name) {
			e := Event{Type: name, Data: data}
			kept, err := keptOf(&e)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			members, err := rawjson.Members(kept)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, m := range members {
				value := strings.Trim(string(m.Value), `"`)
				var h Hash
				if isDigest := h.UnmarshalText([]byte(value)) == nil || Digest(value).valid(); isDigest && !harmless[string(name)+"."+m.Name] {
					t.Errorf("%s keeps %s, a digest", name, m.Name)
				}
			}
		}
	}
}
