package render_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/internal/modelapi"
)

// whole are requests with all members in the references of the APIs.
var whole = map[string]string{
	"anthropic": `{"system":[{"type":"text","text":"Be brief."}],"messages":[
{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}},
 {"type":"image","source":{"type":"url","url":"https://example.org/a.png"}},
 {"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"x"}},
 {"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}]},
{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"redacted_thinking","data":"eHl6"},
 {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"tides"}},
 {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.org"}]},
 {"type":"tool_use","id":"a","name":"ls","input":{"path":"."}},{"type":"tool_use","id":"b","name":"cat","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}],"is_error":true},
 {"type":"tool_result","tool_use_id":"b"},{"type":"text","text":"Well?"}]},
{"role":"assistant","content":[{"type":"text","text":"Done."}]}]}`,
	"openai chat": `{"messages":[
{"role":"system","content":"Be brief."},
{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}},
 {"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]},
{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},
 {"id":"b","type":"function","function":{"name":"cat","arguments":"{\"n\":1}"}}]},
{"role":"tool","tool_call_id":"a","content":"x"},
{"role":"tool","tool_call_id":"b","content":"y"},
{"role":"assistant","content":"Done."}]}`,
	"openai responses": `{"input":[
{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."},{"type":"input_image","image_url":"https://example.org/a.png"},
 {"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="},{"type":"input_file","file_url":"https://example.org/b.pdf"}]},
{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"eHl6"},
{"type":"function_call","call_id":"a","name":"ls","arguments":"{}"},
{"type":"function_call","call_id":"b","name":"cat","arguments":"{\"n\":1}"},
{"type":"function_call_output","call_id":"a","output":"x"},
{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"y"}]},
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}]}`,
}

// mutant is a request with one change.
type mutant struct {
	change string
	raw    []byte
}

// mutants are the requests with one change: a member is removed, added or replaced,
// or an element is removed, repeated or swapped.
func mutants(t *testing.T, whole string) (all []mutant) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(whole), &v); err != nil {
		t.Fatal(err)
	}
	try := func(format string, args ...any) {
		raw, err := json.Marshal(v, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, mutant{fmt.Sprintf(format, args...), raw})
	}
	change(v, "request", func(o any) { v = o }, try)
	return all
}

// others are the replacements for a value.
var others = []any{nil, true, 7.0, "", " ", "other", []any{}, []any{"x"}, map[string]any{}}

// change makes all changes at a path and below it, one at a time. put replaces the
// value at the path.
func change(v any, path string, put func(any), try func(string, ...any)) {
	for _, o := range others {
		put(o)
		try("%s = %v", path, o)
	}
	put(v)
	switch v := v.(type) {
	case map[string]any:
		v["surprise"] = 1.0
		try("%s.surprise", path)
		delete(v, "surprise")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			was := v[name]
			delete(v, name)
			try("%s.%s is gone", path, name)
			v[name] = was
			change(was, path+"."+name, func(o any) { v[name] = o }, try)
		}
	case []any:
		elements(v, path, put, try)
		for i, was := range v {
			change(was, fmt.Sprintf("%s[%d]", path, i), func(o any) { v[i] = o }, try)
		}
	}
}

// elements removes, repeats and swaps elements.
func elements(v []any, path string, put func(any), try func(string, ...any)) {
	for i := range v {
		put(slices.Concat(v[:i], v[i+1:]))
		try("%s[%d] is gone", path, i)
		for to := range len(v) + 1 {
			put(slices.Insert(slices.Clone(v), to, v[i]))
			try("%s[%d] also at %d", path, i, to)
		}
		for to := range i {
			moved := slices.Clone(v)
			moved[i], moved[to] = moved[to], moved[i]
			put(moved)
			try("%s[%d] and [%d] swapped", path, to, i)
		}
	}
	put(v)
}

// harmless match the names of the changes that leave a request valid.
var harmless = map[string][]string{
	"anthropic": {
		`^request.messages = \[\]$`,
		`^request.messages\[3\] is gone$`,   // the conversation ends with the user
		`^request.messages\[0\] also at 4$`, // or goes on
		`^request.messages\[0\].content\[\d\] (is gone|also at \d|and \[\d\] swapped)$`, // the user's parts, in any order
		`^request.messages\[[023]\].content\[\d\].text = other$`,
		`^request.messages\[0\].content\[3\].(title = other|title is gone|source.data = other)$`,
		`^request.messages\[1\].content\[[01]\] (is gone|also at \d)$`,                 // thinking
		`^request.messages\[1\].content\[[01]\].(signature|thinking|data) = other$`,    // only the provider can check it
		`^request.messages\[1\].content\[0\].thinking = ?`,                             // may be empty
		`^request.messages\[1\].content\[[01]\] and \[[124]\] swapped$`,                // calls may be anywhere
		`^request.messages\[1\].content\[[34]\] and \[[45]\] swapped$`,                 // before a result
		`^request.messages\[1\].content\[[245]\].input( = map\[\]|\.\w+)`,              // the input of a tool
		`^request.messages\[1\].content\[[45]\].name = other$`,                         // tools of the client
		`^request.messages\[1\].content\[3\].content( = \[\]|\[0\] (is gone|also at))`, // search results
		`^request.messages\[1\].content\[3\].content\[0\].(surprise|url|type = other)`,
		`^request.messages\[2\].content\[0\] and \[1\] swapped$`, // results
		`^request.messages\[2\].content\[2\] (is gone|also at [23])$`,
		`^request.messages\[2\].content\[0\].content( is gone| = \[\]|\[0\] is gone|\[0\] also at \d|\[0\].text = other)$`,
		`^request.messages\[2\].content\[0\].is_error( is gone| = true)$`,
		`^request.messages\[3\].content\[0\] also at \d$`,
		`^request.system( is gone|\[0\] also at \d|\[0\].text = other)$`,
	},
	"openai chat": {
		`^request.messages = \[\]$`,
		`^request.messages\[[015]\] (is gone|also at [01256])$`, // neither a call nor a result
		`^request.messages\[[01]\] and \[[15]\] swapped$`,
		`^request.messages\[3\] and \[4\] swapped$`, // results
		`^request.messages\[\d\].content = other$`,
		`^request.messages\[[34]\].content = ?`, // a result may be empty
		`^request.messages\[2\].content = <nil>$`,
		`^request.messages\[1\].content\[\d\] (is gone|also at \d|and \[\d\] swapped)$`,
		`^request.messages\[1\].content\[\d\].(text|file.filename) = other$`,
		`^request.messages\[2\].tool_calls\[0\] and \[1\] swapped$`,
		`^request.messages\[2\].tool_calls\[[01]\].function.name = other$`,
	},
	"openai responses": {
		`^request.input = \[\]$`,
		`^request.input\[[016]\] is gone$`,
		`^request.input\[0\] also at [0167]$`, // not between calls and results
		`^request.input\[1\] also at [1236]$`, // before an item of the model
		`^request.input\[6\] also at \d$`,
		`^request.input\[(1\] and \[2|2\] and \[3|3\] and \[4|4\] and \[5|[045]\] and \[6)\] swapped$`,
		`^request.input\[0\].content\[\d\] (is gone|also at \d|and \[\d\] swapped)$`,
		`^request.input\[[056]\].(content|output)\[\d\].(text|filename) = other$`,
		`^request.input\[1\].encrypted_content = other$`,
		`^request.input\[1\].summary( = \[\]|\[0\] is gone|\[0\] also at \d|\[0\].text = other)$`,
		`^request.input\[[23]\].name = other$`,
		`^request.input\[[45]\].output = ( ?|other)$`,
		`^request.input\[[56]\].(content|output)\[0\] also at \d$`,
	},
}

// Check finds every change that makes a request invalid.
func TestChecksFindEveryChange(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			if err := s.check([]byte(whole[s.name])); err != nil {
				t.Fatalf("the whole request: %v", err)
			}
			passed := map[string]int{} // by what is harmless
			all := mutants(t, whole[s.name])
			for _, m := range all {
				err := s.check(m.raw)
				i := slices.IndexFunc(harmless[s.name], func(p string) bool { return regexp.MustCompile(p).MatchString(m.change) })
				switch {
				case err == nil && i < 0:
					t.Errorf("%s passes: %s", m.change, m.raw)
				case err == nil:
					passed[harmless[s.name][i]]++
				case !errors.Is(err, modelapi.ErrRequest):
					t.Errorf("%s: another error: %v", m.change, err)
				}
			}
			for _, p := range harmless[s.name] {
				if passed[p] == 0 {
					t.Errorf("nothing passes that is %s", p)
				}
			}
			t.Logf("%d changes", len(all))
		})
	}
}
