package lists_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/lists"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// pool are elements for any list: of each shape, and of no shape.
var pool = []string{
	`{"role":"system","content":"Be brief."}`, `{"role":"developer","content":"Be kind."}`,
	`{"role":"user","content":"one"}`, `{"role":"user","content":"two"}`, `{"role":"user","content":""}`,
	`{"role":"assistant","content":"1"}`, `{"role":"assistant","content":""}`, `{"role":"assistant","content":"2","reasoning":"hm"}`,
	`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"[1]"}}]}`,
	`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
	`{"role":"tool","tool_call_id":"c1","content":"r1"}`, `{"role":"tool","tool_call_id":"c2","content":"r2"}`, `{"role":"tool","content":"whose"}`,
	`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}}]}`,
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}]},{"type":"text","text":"see"}]}`,
	`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"text","text":"a"},{"type":"tool_use","id":"c1","name":"f","input":{"b":2}}]}`,
	`{"role":"assistant","content":[{"type":"redacted_thinking","data":"eHl6"}]}`,
	`{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"note"}}]}`,
	`{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}`,
	`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"1"}]}`,
	`{"type":"reasoning","summary":[],"encrypted_content":"eHl6"}`, `{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}]}`,
	`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`, `{"type":"function_call","call_id":"c2","name":"g","arguments":"oops"}`,
	`{"type":"function_call_output","call_id":"c1","output":"r1"}`, `{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"r2"}]}`,
	`{"type":"web_search_call","id":"ws_1"}`, `{"type":"item_reference","id":"m"}`, `{"note":true}`, `"text"`, `null`,
}

// anyList is a list that begins with a message.
func anyList(t *rapid.T) []string {
	all := []string{rapid.SampledFrom(pool[:4]).Draw(t, "first")}
	return append(all, rapid.SliceOfN(rapid.SampledFrom(pool), 0, 10).Draw(t, "elements")...)
}

func document(elements []string) string {
	return `{"id":"conversation-1","messages":[` + strings.Join(elements, ",") + `]}`
}

// Law: an import of an exported list, exported again, gives the same bytes in each
// shape.
func TestExportsOfAnyListComeBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list := anyList(r)
		first := importtest.NewLog(t)
		load(t, first, document(list))
		for _, format := range []string{"openai", "responses", "anthropic"} {
			once := exported(t, first, "conversation-1", format)
			second := importtest.NewLog(t)
			got := load(t, second, string(once))
			if len(got.Sessions) == 0 {
				continue // the export is empty
			}
			if diff := cmp.Diff(string(once), string(exported(t, second, got.Sessions[0], format))); diff != "" {
				r.Fatalf("%s of %s (+):\n%s", format, document(list), diff)
			}
		}
	})
}

// Law: a list that is imported while it grows gives the same messages and the same
// title as the whole list.
func TestAListThatGrows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list := anyList(r)
		whole, grown := importtest.NewLog(t), importtest.NewLog(t)
		load(t, whole, document(list))
		for n := 1; n <= len(list); n += rapid.IntRange(1, 4).Draw(r, "more") {
			load(t, grown, document(list[:n]))
		}
		load(t, grown, document(list))
		if diff := cmp.Diff(contents(t, whole), contents(t, grown)); diff != "" {
			r.Fatalf("grown (+):\n%s", diff)
		}
	})
}

// contents is the title of the session, and its events except those about the
// session.
func contents(t *testing.T, log *eventlog.Log) []string {
	info, err := projection.Load(t.Context(), log, "conversation-1", projection.Info())
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{info.State.Title}, slices.DeleteFunc(draw(t, log, "conversation-1"), func(line string) bool {
		return strings.HasPrefix(line, "session_")
	})...)
}

// Law: any lists are imported into one session. After a list with a new element, the
// model sees that list. No list is imported twice.
func TestListsThatPart(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log := importtest.NewLog(t)
		var all []string
		list := anyList(r)
		for range rapid.IntRange(1, 5).Draw(r, "lists") {
			keep := rapid.IntRange(1, len(list)).Draw(r, "keep")
			list = append(list[:keep:keep], rapid.SliceOfN(rapid.SampledFrom(pool), 0, 4).Draw(r, "then")...)
			all = append(all, document(list))
			if got := load(t, log, document(list)); got.Events > 0 {
				alone := importtest.NewLog(t)
				load(t, alone, document(list))
				if diff := cmp.Diff(string(exported(t, alone, "conversation-1", "openai")), string(exported(t, log, "conversation-1", "openai"))); diff != "" {
					r.Fatalf("%s (+):\n%s", document(list), diff)
				}
			}
			for _, before := range all {
				if got := load(t, log, before); got.Events > 0 {
					r.Fatalf("%s is imported again: %+v", before, got)
				}
			}
		}
		if report, err := verify.Session(t.Context(), log, "conversation-1"); err != nil || len(report.Defects) > 0 {
			r.Fatalf("verify: %v, %v", report.Defects, err)
		}
	})
}

// An answer and the call after it are one message. This is so even if the call comes
// with a later import, and is the first item of Responses in the list.
func TestAChatThatGoesOnWithItems(t *testing.T) {
	list := []string{`{"role":"user","content":"one"}`, `{"role":"assistant","content":"1"}`, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`}
	whole, grown := importtest.NewLog(t), importtest.NewLog(t)
	load(t, whole, document(list))
	load(t, grown, document(list[:2]))
	load(t, grown, document(list))
	want := exported(t, whole, "conversation-1", "openai")
	importtest.Same(t, "grown", string(want), string(exported(t, grown, "conversation-1", "openai")))
	if strings.Count(string(want), `"role":"assistant"`) != 1 {
		t.Errorf("the whole is %s", want)
	}
}

// An element that is no message separates an answer from its call in one list, and not in
// the next: both lists have one answer.
func TestAnElementWithinAnAnswer(t *testing.T) {
	log, alone := importtest.NewLog(t), importtest.NewLog(t)
	load(t, log, document([]string{pool[0], `{"role":"assistant","content":"1"}`, `{"type":"item_reference","id":"m"}`, `{"type":"function_call","call_id":"c2","name":"g","arguments":"{}"}`}))
	parted := document([]string{pool[0], `{"role":"assistant","content":"1"}`, `{"type":"function_call","call_id":"c2","name":"g","arguments":"{}"}`, pool[2]})
	load(t, log, parted)
	load(t, alone, parted)
	importtest.Same(t, "parted", string(exported(t, alone, "conversation-1", "openai")), string(exported(t, log, "conversation-1", "openai")))
}

// A changed message begins another branch after the last equal message. A change of
// unknown members begins none.
func TestBranches(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, `{"id":"conversation-1","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`)
	load(t, log, `{"id":"conversation-1","n":1,"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{}}]},{"role":"assistant","content":"B"}]}`)
	load(t, log, `{"id":"conversation-1","n":1,"messages":[{"role":"user","content":"A"}]}`)
	want := []string{
		`session_started {"title":"a","source":{"format":"openai","path":"talk.json","session_id":"conversation-1"},"extra":{"id":"conversation-1"}}`,
		`user {"type":"text","text":"a"}`, `assistant {"type":"text","text":"b"}`, `user {"type":"text","text":"c"}`,
		`session_updated {"extra":{"id":"conversation-1","n":1}}`,
		`head_moved to 2`, `assistant {"type":"text","text":"B"}`,
		`head_moved to 1`, `user {"type":"text","text":"A"}`,
	}
	if diff := cmp.Diff(want, draw(t, log, "conversation-1")); diff != "" {
		t.Error(diff)
	}
}

// A message that another program appended stays, on another branch.
func TestASessionThatWentOn(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, `{"id":"conversation-1","messages":[{"role":"user","content":"a"}]}`)
	e := event.AssistantMessage("from elsewhere")
	if _, err := log.Append(t.Context(), "conversation-1", eventlog.Any(), e); err != nil {
		t.Fatal(err)
	}
	load(t, log, `{"id":"conversation-1","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`)
	want := []string{`user {"type":"text","text":"a"}`, `assistant {"type":"text","text":"from elsewhere"}`, `head_moved to 2`, `assistant {"type":"text","text":"b"}`}
	if diff := cmp.Diff(want, draw(t, log, "conversation-1")[1:]); diff != "" {
		t.Error(diff)
	}
}

// The next import does not bring redacted events back.
func TestRedactedStaysRedacted(t *testing.T) {
	log := importtest.NewLog(t)
	const secret = `{"id":"conversation-1","key":"secret","messages":[{"role":"user","content":"secret"}]}`
	load(t, log, secret)
	if _, err := erase.Redact(t.Context(), log, "conversation-1", []int64{1, 2}, erase.RedactOptions{Reason: "a leak"}); err != nil {
		t.Fatal(err)
	}
	got := load(t, log, `{"id":"conversation-1","key":"secret","messages":[{"role":"user","content":"secret"},{"role":"assistant","content":"b"}]}`)
	if lines := draw(t, log, "conversation-1"); got.Imported != 1 || strings.Contains(strings.Join(lines, "\n"), "secret") {
		t.Errorf("%+v: %q", got, lines)
	}
}

// A list with another message before an erased one, or a copy of the list under another name,
// stops the import of its session, and no other session of the file.
func TestListsThatMayHoldErasedText(t *testing.T) {
	const list = `{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},{"role":"user","content":"PIN 4711x"}`
	const next = `,{"role":"assistant","content":"noted"},{"role":"user","content":"thanks"},{"role":"assistant","content":"bye"}`
	for name, test := range map[string]struct {
		first, id, later string
		stops            bool
	}{
		"another name":                           {list, "conversation-9", list, true},
		"another name, grown":                    {list, "conversation-9", list + next, true},
		"another name, a message before":         {list, "conversation-9", `{"role":"system","content":"be nice"},` + list, true},
		"another name, its first message edited": {list + next, "conversation-9", strings.Replace(list+next, "hello", "hallo", 1), true},
		"another name, all of it before":         {list, "conversation-9", `{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}`, false},
		"another conversation":                   {list, "conversation-9", `{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":"PIN?"}`, false},
		"a message before":                       {list, "conversation-1", `{"role":"system","content":"be nice"},` + list, true},
		"a message right before":                 {list + next, "conversation-1", strings.Replace(list+next, `{"role":"user","content":"PIN`, `{"role":"user","content":"so"},{"role":"user","content":"PIN`, 1), true},
		"grown":                                  {list, "conversation-1", list + next, false},
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			load(t, log, `{"id":"conversation-1","messages":[`+test.first+`]}`)
			if _, err := erase.Redact(t.Context(), log, "conversation-1", []int64{4}); err != nil {
				t.Fatal(err)
			}
			content := `{"id":"` + test.id + `","messages":[` + test.later + `]}` + "\n" + `{"id":"conversation-2","messages":[{"role":"user","content":"other"}]}`
			_, err := lists.Format{}.Import(t.Context(), log, importtest.Source("talk.jsonl", content))
			if errors.Is(err, interop.ErrErased) != test.stops || err != nil && !test.stops {
				t.Errorf("the import: %v", err)
			}
			if other := draw(t, log, "conversation-2"); len(other) != 2 {
				t.Errorf("the other session: %q", other)
			}
			if all := importtest.Remains(t, log); importtest.Says(all, "4711x") {
				t.Error("the erased text is back")
			}
			table, err := interop.Import(t.Context(), log, []interop.Format{lists.Format{}}, nil,
				interop.Options{EvenErased: true, Sources: []interop.Source{importtest.Source("talk.jsonl", content)}})
			if all := importtest.Remains(t, log); err != nil || importtest.Says(all, "4711x") != test.stops {
				t.Errorf("even erased: %+v, %v", table.Total(), err)
			}
		})
	}
}

// A list of the messages of any session, exported before the erasure, is a copy.
func TestAListOfAnErasedSession(t *testing.T) {
	log := importtest.NewLog(t)
	answer := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("hi")}})
	if _, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("hello"), answer, event.UserMessage("PIN 4711x")); err != nil {
		t.Fatal(err)
	}
	list := string(exported(t, log, "s", "openai"))
	if _, err := erase.Redact(t.Context(), log, "s", []int64{3}); err != nil {
		t.Fatal(err)
	}
	_, err := lists.Format{}.Import(t.Context(), log, importtest.Source("talk.jsonl", list))
	if !errors.Is(err, interop.ErrErased) || importtest.Says(importtest.Remains(t, log), "4711x") {
		t.Errorf("the import of %s: %v", list, err)
	}
}

// An import does not bring redacted settings of a session_updated back.
func TestRedactedSettingsStayRedacted(t *testing.T) {
	log := importtest.NewLog(t)
	const later = `{"id":"conversation-1","key":"secret","messages":[{"role":"user","content":"a"}]}`
	load(t, log, `{"id":"conversation-1","messages":[{"role":"user","content":"a"}]}`)
	load(t, log, later)
	if _, err := erase.Redact(t.Context(), log, "conversation-1", []int64{3}, erase.RedactOptions{Reason: "a leak"}); err != nil {
		t.Fatal(err)
	}
	if got := load(t, log, later); got.Events != 0 {
		t.Errorf("%+v: %q", got, draw(t, log, "conversation-1"))
	}
}

// Conversations are in lists, on lines, or both. The file names a conversation
// without a unique id.
func TestSessions(t *testing.T) {
	const hi = `[{"role":"user","content":"hi"}]`
	for content, want := range map[string]string{
		hi: "talk-1-", `{"messages":` + hi + `}`: "talk-1-", `{"id":"conversation-1","messages":` + hi + `}`: "conversation-1",
		`{"id":7,"messages":` + hi + `}`:                                                      "talk-7-",
		`{"id":"a/b","messages":` + hi + `}`:                                                  "talk-a-b-",
		`{"thread_id":"thread_0000001","id":null,"messages":` + hi + `}`:                      "thread_0000001",
		hi + "\n" + hi + "\n":                                                                 "talk-1- talk-2-",
		"[" + hi + ",\n{\"messages\":" + hi + "}]":                                            "talk-1- talk-2-",
		"{\n\"messages\": " + hi + "\n}\n{\n\"messages\": " + hi + "\n}":                      "talk-1- talk-2-",
		`{"role":"user","content":"hi"}` + "\r\n\r\n" + `{"role":"assistant","content":"ho"}`: "talk-1-",
		`{"messages":[]}` + "\n" + `{"messages":` + hi + "}\n":                                "talk-2-",
	} {
		log := importtest.NewLog(t)
		got := load(t, log, content)
		if len(got.Rejected) > 0 {
			t.Errorf("%s: %+v", content, got)
		}
		var names []string
		for _, id := range importtest.Sessions(t, log) {
			if strings.HasPrefix(id, "talk-") {
				id = id[:strings.LastIndex(id, "-")+1]
			}
			names = append(names, id)
		}
		if all := strings.Join(names, " "); all != want {
			t.Errorf("%s: sessions %s, want %s", content, all, want)
		}
	}
}

// Conversations of two files with one id become two sessions, unless one continues
// the other.
func TestOneIDInTwoFiles(t *testing.T) {
	const system, a, b = `{"role":"system","content":"s"}`, `{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`
	log := importtest.NewLog(t)
	for range 2 {
		for i, list := range [][]string{{system, a}, {system, a, pool[5]}, {system, b}} {
			if _, err := (lists.Format{}).Import(t.Context(), log, importtest.Source(fmt.Sprint(i, ".json"), document(list))); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := importtest.Sessions(t, log)
	if len(all) != 2 || len(draw(t, log, all[0]))+len(draw(t, log, all[1])) != 4+3 {
		t.Errorf("sessions %q", all)
	}
}

// The whole elements of a truncated file are imported, and the rest when the file is
// complete.
func TestTruncated(t *testing.T) {
	const first, second = `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"ho"}`
	for _, whole := range []string{
		"[" + first + "," + second + "]", `{"a":{},"messages":[` + first + "," + second + `]}`,
		first + "\n" + second + "\n", "{\n\"messages\": [\n" + first + ",\n" + second + "\n]\n}",
		`{"messages":[` + first + `]}` + "\n" + `{"id":3,"messages":[` + first + "," + second + `]}`,
	} {
		log := importtest.NewLog(t)
		cut := whole[:strings.LastIndex(whole, `"ho"`)]
		got := load(t, log, cut)
		if len(got.Rejected) != 1 || !strings.Contains(got.Rejected[0].Reason, "cut off") || got.Imported == 0 {
			t.Errorf("%s: %+v", cut, got)
		}
		before := importtest.Sessions(t, log)
		got = load(t, log, whole)
		if len(got.Rejected) > 0 || got.Imported != 1 || got.Present == 0 || len(importtest.Sessions(t, log)) != len(before) {
			t.Errorf("then %s: %+v", whole, got)
		}
	}
}

// The usage of a response comes after its answer. So a truncated response is rejected,
// and imported as a whole when the file is complete.
func TestTruncatedResponse(t *testing.T) {
	for _, whole := range []string{
		`{"id":"resp_1","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ho"}]}],"usage":{"input_tokens":9,"output_tokens":5}}`,
		`{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","content":"ho"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`,
	} {
		log := importtest.NewLog(t)
		for _, cut := range []string{`,"usage"`, `:9`} {
			if got := load(t, log, whole[:strings.Index(whole, cut)]); len(got.Rejected) != 1 {
				t.Errorf("cut off before %s: %+v", cut, got)
			}
		}
		got := load(t, log, whole)
		if m := importtest.Messages(t, log, got.Sessions[0]); len(m) != 1 || m[0].Usage.InputTokens != 9 || m[0].Usage.OutputTokens != 5 {
			t.Errorf("then %s: %+v", whole, m)
		}
	}
}

// An element of a list of conversations that is none is rejected with its place, and the others
// are imported.
func TestARefusedElement(t *testing.T) {
	const hi = `[{"role":"user","content":"hi"}]`
	log := importtest.NewLog(t)
	got := load(t, log, "["+hi+",\n{\"text\":\"no list\"},\n7,"+`{"id":"conversation-1","messages":`+hi+"}]")
	var lines []string
	for _, r := range got.Rejected {
		lines = append(lines, fmt.Sprint(r.Line))
	}
	if strings.Join(lines, " ") != "2 3" || len(got.Sessions) != 2 || got.Imported != 2 {
		t.Errorf("refused lines %s of %+v", lines, got)
	}
}

// Lines without a conversation are rejected, and the other lines are imported.
func TestRefused(t *testing.T) {
	log := importtest.NewLog(t)
	content := strings.Join([]string{`[{"role":"user","content":"hi"}]`, `{"text":"no list"}`, `{"messages":[`, `7`, `[{"role":"user","content":"\ud800"}]`, `{"id":"x","id":"y"}`, `["no list"]`}, "\n")
	got := load(t, log, content)
	var lines []string
	for _, r := range got.Rejected {
		lines = append(lines, fmt.Sprint(r.Line))
	}
	if strings.Join(lines, " ") != "2 3 4 6 7" || len(got.Sessions) != 2 {
		t.Errorf("refused lines %s of %+v", lines, got)
	}
}

// A session with the same id from another program stays as it is. The other sessions
// of the file are imported.
func TestAnothersSession(t *testing.T) {
	log := importtest.NewLog(t)
	importtest.Say(t, log, "conversation-1", event.Message{Role: event.User, Parts: []event.Part{event.Text("mine")}})
	content := document(pool[2:3]) + "\n[" + pool[2] + "]\n"
	got, err := lists.Format{}.Import(t.Context(), log, importtest.Source("talk.json", content))
	if !errors.Is(err, interop.ErrHistory) || len(importtest.Sessions(t, log)) != 2 || len(draw(t, log, "conversation-1")) != 1 {
		t.Errorf("%+v, %v, %q", got, err, importtest.Sessions(t, log))
	}
}

func FuzzImport(f *testing.F) {
	for _, c := range importable {
		f.Add(c.content)
	}
	f.Add(strings.Join(pool, "\n"))
	importtest.Fuzz(f, lists.Format{}, "f")
}
