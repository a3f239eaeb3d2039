package codex_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// anyLine is a line of any type. It has few different values, so equal lines recur.
func anyLine(t *rapid.T) string {
	small := func(name string) int { return rapid.IntRange(0, 3).Draw(t, name) }
	turn := fmt.Sprintf(`"turn_id":"0190000%d-0000-7000-8000-00000000000%d"`, rapid.IntRange(4, 7).Draw(t, "session of the turn"), small("turn"))
	said := fmt.Sprintf(`[{"type":"input_text","text":%q}]`, rapid.SampledFrom([]string{"One", "Two", "<skill>x</skill>"}).Draw(t, "text"))
	call := fmt.Sprintf(`"call_id":"c%d"`, small("call"))
	const spawn = `"type":"function_call","name":"spawn_agent","arguments":"{\"message\": \"Go\"}",`
	kind, payload := "response_item", ""
	switch rapid.IntRange(0, 15).Draw(t, "kind") {
	case 0, 1:
		payload = `"type":"message","role":"user","content":` + said
	case 2, 3:
		payload = `"type":"message","role":"assistant","content":` + said
	case 4:
		payload = spawn + call
	case 5:
		payload = fmt.Sprintf(`"type":"function_call_output","output":"{\"agent_id\":\"a%d\"}",`, small("agent")) + call
	case 6:
		payload = `"type":"reasoning","summary":[],"encrypted_content":"eA=="`
	case 7:
		kind, payload = "event_msg", `"type":"task_started",`+turn
	case 8:
		kind, payload = "event_msg", `"type":"task_complete",`+turn
	case 9:
		kind, payload = "event_msg", fmt.Sprintf(`"type":"thread_rolled_back","num_turns":%d`, small("turns"))
	case 10:
		kind, payload = "event_msg", fmt.Sprintf(`"type":"token_count","info":{"total_token_usage":{"input_tokens":%d},"last_token_usage":{"input_tokens":7}}`, small("total"))
	case 11:
		kind, payload = "compacted", `"message":"Sum","replacement_history":[{"type":"message","role":"user","content":`+said+`,"id":"m"},{`+spawn+call+`}]`
	case 12:
		kind, payload = "event_msg", fmt.Sprintf(`"type":"collab_waiting_end","statuses":{"a%d":{"completed":"Done"}}`, small("agent"))
	case 13:
		kind, payload = "session_meta", fmt.Sprintf(`"id":%q,"cwd":"/%d"`, id(fmt.Sprint(rapid.IntRange(4, 7).Draw(t, "meta"))), small("cwd"))
	case 14:
		kind, payload = "turn_context", fmt.Sprintf(`"model":"m%d",`, small("model"))+turn
	default:
		kind, payload = "world_state", `"full":true`
	}
	if rapid.Bool().Draw(t, "spaces") {
		payload = strings.ReplaceAll(payload, `":`, `": `)
	}
	return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:%02dZ","type":%q,"payload":{%s}}`+"\n", rapid.IntRange(0, 59).Draw(t, "time"), kind, payload)
}

func lines(t *rapid.T, name string) (all []string) {
	for range rapid.IntRange(0, 25).Draw(t, name) {
		all = append(all, anyLine(t))
	}
	return all
}

func headerLine(n, forkedFrom string) string {
	return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":%q,"forked_from_id":%q}}`+"\n", id(n), forkedFrom)
}

// Law: the import of a growing file and its parent gives the same log as the import of
// the whole files, and a second import writes nothing.
func TestAnyGrowingFileGivesTheSameLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		parent := append([]string{headerLine("4", "")}, lines(r, "lines of the parent")...)
		own := lines(r, "lines")
		copies := rapid.IntRange(0, len(parent)).Draw(r, "copies")
		child := append(append([]string{headerLine("7", id("4"))}, parent[:copies]...), own...)
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(child)), 0, 4).Draw(r, "cuts")
		for _, before := range [][]string{nil, parent} {
			importtest.Lines{Format: codex.Format{}, Before: strings.Join(before, "")}.Grows(r, child, cuts)
		}
	})
}
