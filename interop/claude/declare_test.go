package claude_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// What a file owns and needs is found in every line, however its members are written.
func TestDeclare(t *testing.T) {
	agent := func(session, agent, uuid string) string {
		return strings.Replace(userPrompt(session, uuid, "", uuid), `"isSidechain":false`, `"isSidechain":true,"agentId":"`+agent+`"`, 1)
	}
	spaced := func(line string) string { return strings.ReplaceAll(line, `"sessionId":"`, `"sessionId" : "`) }
	nested := func(line, session string) string {
		return strings.Replace(line, "{", `{"data":{"sessionId":"`+session+`"},`, 1)
	}
	note := func(session string) string {
		return `{"type":"mode","mode":"normal","sessionId":"` + session + `"}` + "\n"
	}
	tests := map[string]struct {
		text        string
		owns, needs []string
	}{
		"one session":        {text: userPrompt("s", "1", "", "1") + userPrompt("s", "2", "1", "2"), owns: []string{"s"}},
		"another at the end": {text: userPrompt("s", "1", "", "1") + userPrompt("s", "2", "1", "2") + userPrompt("t", "3", "2", "3"), owns: []string{"s", "t"}},
		"the other is nested": {
			text: userPrompt("s", "1", "", "1") + nested(userPrompt("s", "2", "1", "2"), "t") + nested(userPrompt("u", "3", "", "3"), "s"), owns: []string{"s", "u"},
		},
		"spaces":         {text: spaced(userPrompt("s", "1", "", "1") + userPrompt("t", "2", "", "2")), owns: []string{"s", "t"}},
		"a sub-agent":    {text: agent("s", "a", "1") + agent("s", "a", "2"), owns: []string{"s.agent-a"}, needs: []string{"s"}},
		"two sub-agents": {text: agent("s", "a", "1") + agent("s", "b", "2"), owns: []string{"s.agent-a", "s.agent-b"}, needs: []string{"s", "s"}},
		"a session and its sub-agent": {
			text: userPrompt("s", "1", "", "1") + agent("s", "a", "2"), owns: []string{"s", "s.agent-a"}, needs: []string{"s"},
		},
		"notes":                          {text: note("s"), owns: []string{"s"}, needs: []string{"claude:begin/s"}},
		"notes of one that begins later": {text: note("s") + note("s") + userPrompt("s", "1", "", "1"), owns: []string{"s"}},
		"a parent elsewhere": {
			text: userPrompt("s", "2", "1", "2"), owns: []string{"s"}, needs: []string{"claude:line/s/1", "claude:root/s"},
		},
		"a parent that comes later": {
			text: userPrompt("s", "2", "1", "2") + userPrompt("s", "1", "", "1"), owns: []string{"s"}, needs: []string{"claude:line/s/1", "claude:root/s"},
		},
		"no sessions": {text: `{"type":"summary","leafUuid":"1"}` + "\nno JSON\n[]\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ids := claude.Format{}.Declare(importtest.Source("f", test.text))
			sessions := slices.DeleteFunc(ids.Owns, func(id string) bool { return strings.HasPrefix(id, "claude:") })
			importtest.Same(t, "owned sessions", test.owns, slices.Clip(sessions))
			slices.Sort(ids.Needs)
			importtest.Same(t, "needs", test.needs, ids.Needs)
		})
	}
}

// More lists the lines that have a session and a uuid.
func TestDeclareListsLines(t *testing.T) {
	ids := claude.Format{}.Declare(importtest.Source("f", userPrompt("s", "1", "", "1")+`{"type":"summary","uuid":"x"}`+"\n"+userPrompt("t", "2", "1", "2")))
	importtest.Same(t, "lines", []string{"claude:line/s/1", "claude:line/t/2"}, slices.Collect(ids.More))
	for range ids.More {
		break
	}
	var _ interop.Declarer = claude.Format{}
}
