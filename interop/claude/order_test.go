package claude_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/runlog"
)

// chain is a conversation in which each line names the line before it as its parent. A
// call and its result share an id.
type chain struct {
	lines []string
	last  string
}

func (c *chain) add(kind, message string) {
	uuid, parent := fmt.Sprintf("u%d", len(c.lines)), "null"
	if c.last != "" {
		parent = `"` + c.last + `"`
	}
	c.lines = append(c.lines, fmt.Sprintf(
		`{"type":%q,"sessionId":"s","cwd":"/srv","uuid":%q,"parentUuid":%s,"timestamp":"2026-01-01T00:00:%02dZ","message":%s}`+"\n",
		kind, uuid, parent, len(c.lines)%60, message))
	c.last = uuid
}

func (c *chain) ask(text string) { c.add("user", fmt.Sprintf(`{"role":"user","content":%q}`, text)) }

func (c *chain) call(group, id string) {
	c.add("assistant", fmt.Sprintf(`{"role":"assistant","id":%q,"content":[{"type":"tool_use","id":%q,"name":"Read","input":{}}]}`, group, id))
}

func (c *chain) result(id string) {
	c.add("user", fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"of %s"}]}`, id, id))
}

// historyOf draws the history of session s without seqs.
func historyOf(t importtest.TB, lines []string) (all []string) {
	log := importtest.NewLog(t)
	importtest.Load(t, log, claude.Format{}, "f", strings.Join(lines, ""))
	for _, e := range importtest.History(t, log, "s") {
		all = append(all, e.Made+importtest.MessageOutline(&e.Message))
	}
	return all
}

// Law: a result before its call is the result of the call, wherever it is. The history is
// the one of the lines in order.
func TestResultsBeforeTheirCalls(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var c chain
		var results []int // their calls are in the line before
		for turn := range rapid.IntRange(1, 3).Draw(r, "turns") {
			c.ask(fmt.Sprintf("Question %d", turn))
			for n := range rapid.IntRange(0, 3).Draw(r, "calls") {
				id := fmt.Sprintf("c%d.%d", turn, n)
				c.call("m"+id, id)
				results = append(results, len(c.lines))
				c.result(id)
			}
			c.add("assistant", fmt.Sprintf(`{"role":"assistant","id":"a%d","content":"Done."}`, turn))
		}
		late := slices.Clone(c.lines)
		for _, i := range results {
			if rapid.Bool().Draw(r, "before its call?") {
				late[i-1], late[i] = late[i], late[i-1]
			}
		}
		importtest.Same(r, "history", historyOf(r, c.lines), historyOf(r, late))
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(late)), 0, 3).Draw(r, "cuts")
		importtest.Lines{Format: claude.Format{}}.Grows(r, late, cuts)
	})
}

// Results that come before several calls of one message, and before an answer to them.
func TestResultsBeforeAllCalls(t *testing.T) {
	var c chain
	c.ask("Read both.")
	c.call("m", "a")
	c.call("m", "b")
	c.result("b")
	c.result("a")
	c.add("assistant", `{"role":"assistant","id":"n","content":"Done."}`)
	want := historyOf(t, c.lines)
	for name, order := range map[string][]int{
		"both results first":        {0, 3, 4, 1, 2, 5},
		"one result first":          {0, 1, 3, 2, 4, 5},
		"the call after the answer": {0, 1, 3, 4, 5, 2},
	} {
		var lines []string
		for _, i := range order {
			lines = append(lines, c.lines[i])
		}
		got := historyOf(t, lines)
		slices.Sort(got)
		sorted := slices.Sorted(slices.Values(want))
		importtest.Same(t, name, sorted, got)
	}
}

// Law: the calls, results and answers of a turn can come in any order: they are no branches,
// and each result has its call. Only a call before the call that its parent answers can
// look like a line whose parent is lost.
func TestAnyOrderOfATurn(t *testing.T) {
	for _, separate := range []bool{false, true} {
		var c chain
		c.ask("Read both.")
		c.call("m", "a")
		if separate {
			c.result("a")
			c.call("k", "b")
		} else {
			c.call("m", "b")
			c.result("a")
		}
		c.result("b")
		c.add("assistant", `{"role":"assistant","id":"n","content":"Done."}`)
		c.ask("More.")
		want := slices.Sorted(slices.Values(historyOf(t, c.lines)))
		for order := range orders([]int{1, 2, 3, 4, 5}) {
			if separate && slices.Index(order, 3) < slices.Index(order, 1) {
				continue
			}
			lines := []string{c.lines[0]}
			for _, i := range order {
				lines = append(lines, c.lines[i])
			}
			got := slices.Sorted(slices.Values(historyOf(t, append(lines, c.lines[6]))))
			importtest.Same(t, fmt.Sprint("the order ", order), want, got)
		}
	}
}

// orders yields all orders of numbers.
func orders(numbers []int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		if len(numbers) == 0 {
			yield(nil)
			return
		}
		for i, first := range numbers {
			for rest := range orders(slices.Concat(numbers[:i], numbers[i+1:])) {
				if !yield(append([]int{first}, rest...)) {
					return
				}
			}
		}
	}
}

// The log has no open call, and the run tree no open op, after a result before its call.
func TestEarlyResultClosesItsCall(t *testing.T) {
	var c chain
	c.ask("Read.")
	c.call("m", "a")
	c.result("a")
	log := importtest.NewLog(t)
	importtest.Load(t, log, claude.Format{}, "f", c.lines[0]+c.lines[2]+c.lines[1])
	run, err := runlog.Load(t.Context(), log, "s")
	if err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, op := range run.Turns[0].Ops {
		ops = append(ops, fmt.Sprint(op.Kind, " ", op.Name, " ", op.Status))
	}
	importtest.Same(t, "ops", []string{"llm  ok", "tool Read ok"}, ops)
}

// /clear begins an empty history in the same file. The command counts where a line without
// a parent begins a conversation, and once.
func TestClear(t *testing.T) {
	const (
		hook    = `{"type":"attachment","sessionId":"s","uuid":"h","parentUuid":null,"attachment":{"hookEvent":"SessionStart","hookName":"SessionStart:clear"}}` + "\n"
		startup = `{"type":"attachment","sessionId":"s","uuid":"h","parentUuid":null,"attachment":{"hookEvent":"SessionStart","hookName":"SessionStart:startup"}}` + "\n"
		caveat  = `{"type":"user","sessionId":"s","uuid":"k","parentUuid":null,"isMeta":true,"message":{"role":"user","content":"<local-command-caveat>Ignore</local-command-caveat>"}}` + "\n"
		command = `{"type":"user","sessionId":"s","uuid":"l","parentUuid":"k","message":{"role":"user","content":"<command-name>/clear</command-name>"}}` + "\n"
		inside  = `{"type":"user","sessionId":"s","uuid":"l","parentUuid":"u1","message":{"role":"user","content":"<command-name>/clear</command-name>"}}` + "\n"
		prompt  = `{"type":"user","sessionId":"s","uuid":"p","parentUuid":"l","message":{"role":"user","content":"Anew."}}` + "\n"
	)
	var c chain
	c.ask("Long ago.")
	c.add("assistant", `{"role":"assistant","id":"m","content":"Yes."}`)
	old := strings.Join(c.lines, "")
	for name, test := range map[string]struct {
		text   string
		clears int
		first  string
	}{
		"a hook":                       {old + hook + prompt, 1, "user Anew."},
		"a command":                    {old + caveat + command + prompt, 1, "user <command-name>/clear"},
		"a hook and a command":         {old + hook + caveat + command + prompt, 1, "user <local-command-caveat>"},
		"a command and a hook":         {old + caveat + command + hook + prompt, 1, "user <command-name>/clear"},
		"another hook":                 {old + startup + prompt, 0, "user Long"},
		"a command in a conversation":  {old + inside + prompt, 0, "user Long"},
		"the beginning of the session": {hook + old, 0, "user Long"},
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			importtest.Load(t, log, claude.Format{}, "f", test.text)
			clears := 0
			for _, e := range importtest.Events(t, log, "s") {
				if e.Type == event.CompactionTriggered {
					clears++
				}
			}
			importtest.Same(t, "clears", test.clears, clears)
			first := importtest.History(t, log, "s")[0].Message
			if got := importtest.MessageOutline(&first); !strings.HasPrefix(got, test.first) {
				t.Errorf("the history begins %q", got)
			}
			importtest.Lines{Format: claude.Format{}}.Grows(t, strings.SplitAfter(strings.TrimSuffix(test.text, "\n"), "\n"), []int{1, 2, 3})
		})
	}
}

func TestToolReferencesHaveText(t *testing.T) {
	log := importtest.NewLog(t)
	var c chain
	c.call("m", "a")
	c.add("user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"WebSearch"}]}]}`)
	importtest.Load(t, log, claude.Format{}, "f", strings.Join(c.lines, ""))
	result := importtest.Messages(t, log, "s")[1].Parts[0]
	importtest.Same(t, "result", "tool WebSearch", event.Message{Parts: result.Content}.Text())
}

// Lines that programs write are context, and begin no turn.
func TestProgramsWriteContext(t *testing.T) {
	program := func(name string) string { return fmt.Sprintf(`"origin":{"kind":%q},`, name) }
	for name, line := range map[string]string{
		"a notification":          userLine(`"Agent done"`, program("task-notification")),
		"an old notification":     userLine(`"<task-notification>done</task-notification>"`, ""),
		"a message":               userLine(`"<teammate-message teammate_id=\"b\">done</teammate-message>"`, ""),
		"a skill":                 userLine(`"Base directory for this skill: /s"`, ""),
		"text of a tool":          userLine(`"Steps"`, `"sourceToolUseID":"c",`),
		"the end":                 userLine(`"<command-name>/exit</command-name>"`, ""),
		"the output of a command": userLine(`"<bash-stdout>3 bowls</bash-stdout><bash-stderr></bash-stderr>"`, ""),
		"a queued notification":   queuedLine("q", "", "task-notification", "<task-notification>done</task-notification>"),
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			importtest.Load(t, log, claude.Format{}, "f", userLine(`"Go."`, program("human"))+answered+line)
			all := importtest.Events(t, log, "s")
			if last := all[len(all)-1]; !last.IsContext() || all[1].IsContext() {
				t.Errorf("context: %v, %v", all[1].IsContext(), last.IsContext())
			}
			run, err := runlog.Load(t.Context(), log, "s")
			if err != nil || len(run.Turns) != 1 || run.Turns[0].Status != event.TurnStatusCompleted {
				t.Errorf("%d turns (%v)", len(run.Turns), err)
			}
		})
	}
}

// A message that the user types while the model works is an attachment of the type
// queued_command.
func TestQueuedMessages(t *testing.T) {
	var c chain
	c.call("m", "a")
	c.result("a")
	text := strings.Join(c.lines, "") + queuedLine("q", "", "prompt", "Only the blue ones.") +
		strings.Replace(queuedLine("p", "q", "prompt", "x"), `"prompt":"x"`, `"prompt":[{"type":"text","text":"And the red ones."}]`, 1)
	log := importtest.NewLog(t)
	importtest.Load(t, log, claude.Format{}, "f", text)
	importtest.Again(t, log, claude.Format{}, "f", text)
	var said []string
	for _, e := range importtest.Events(t, log, "s") {
		m, ok, err := event.Decode[event.Message](&e)
		if err != nil {
			t.Fatal(err)
		}
		if ok && m.Role == event.User && !e.IsContext() {
			said = append(said, m.Text())
		}
	}
	importtest.Same(t, "what the user said", []string{"Only the blue ones.", "And the red ones."}, said)
	importtest.Lines{Format: claude.Format{}}.Grows(t, strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n"), []int{1, 2, 3})
}

// A goal that the user sets is a request, although its command is local.
func TestGoalIsARequest(t *testing.T) {
	for args, want := range map[string]string{"Count all bowls": "/goal Count all bowls", "clear": "", "": ""} {
		goal := userLine(`"<command-name>/goal</command-name>\n<command-message>goal</command-message>\n<command-args>`+args+`</command-args>"`, "")
		importtest.Same(t, "titles after "+args, []string{want}, titles(t, goal+answered))
	}
}
