package cline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/cline"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// A command with a nonzero exit code is a failed call; the output of the command does not
// count.
func TestFailedCommands(t *testing.T) {
	for text, failed := range map[string]bool{
		"Command executed in terminal. Exit code: 0\nOutput:\nok":                                                            false,
		"Command executed in terminal. Exit code: 2\nOutput:\nno":                                                            true,
		"Command executed.\nOutput:\nExit code: 3":                                                                           false,
		"Command execution was not successful, inspect the cause and adjust as needed.\nExit code: 1\nOutput:\nno such file": true,
		"Exit code: 1 is what the page says":                                                                                 false,
	} {
		head := `[{"role":"user","content":[{"type":"text","text":"<task>\nGo.\n</task>"}]},`
		called := head + `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"execute_command","input":{"command":"ls"}}]},` +
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":%q}]}]`, text)
		written := head + `{"role":"assistant","content":[{"type":"text","text":"<execute_command>\n<command>ls</command>\n</execute_command>"}]},` +
			fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q}]}]`, "[execute_command for 'ls'] Result:\n"+text)
		for _, history := range []string{called, written} {
			log := importtest.NewLog(t)
			importtest.Load(t, log, cline.Format{}, "tasks/1788000000009/api_conversation_history.json", history)
			path := strings.Join(importtest.Path(t, log, importtest.Sessions(t, log)[0]), "\n")
			if got := strings.Contains(path, "failed result"); got != failed {
				t.Errorf("%q: failed %v in\n%s", text, got, path)
			}
		}
	}
}
