package examples

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
)

// child is a running agent, in a folder of its own.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
	got strings.Builder
}

func startAgent(t *testing.T, program, dir, input string, args ...string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(program, args...)}
	c.cmd.Dir, c.cmd.Stdin, c.cmd.Stderr = dir, strings.NewReader(input), os.Stderr
	out, err := c.cmd.StdoutPipe()
	check(t, err)
	check(t, c.cmd.Start())
	c.out = bufio.NewReader(out)
	return c
}

// until reads the output until it ends with one of the texts, and returns its index; -1 at
// the end of the output.
func (c *child) until(texts ...string) int {
	for {
		b, err := c.out.ReadByte()
		if err == io.EOF {
			return -1
		}
		check(c.t, err)
		c.got.WriteByte(b)
		for i, text := range texts {
			if strings.HasSuffix(c.got.String(), text) {
				return i
			}
		}
	}
}

func (c *child) kill() {
	check(c.t, c.cmd.Process.Kill())
	_ = c.cmd.Wait() // killed
}

func (c *child) end() string {
	c.until("\x00")
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("%v\n%s", err, &c.got)
	}
	return c.got.String()
}

// approve answers the review of a session from this process.
func approve(t *testing.T, store string) {
	t.Helper()
	l := eventlog.Open(jsonl.New(store))
	defer l.Close()
	pending, err := projection.LoadPending(t.Context(), l, "chat")
	check(t, err)
	for _, review := range pending.Approvals {
		_, err := flow.Decide(t.Context(), l, "chat", flow.Answer{Review: review, Decision: event.Approved})
		check(t, err)
	}
}

func refunds(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "support-refunds.txt"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// The transcript of examples/agent/README.md: a chat, a kill while a refund waits for a
// person, the approval, and the rest of the turn.
func TestAgentTranscript(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("agent/README.md")
	check(t, err)
	var runs []string
	for _, m := range regexp.MustCompile("(?s)\\$ go run ./examples/agent\n(.*?)(?:Killed\n)?```").FindAllStringSubmatch(string(page), -1) {
		runs = append(runs, m[1])
	}
	if len(runs) != 2 {
		t.Fatalf("README.md has %d runs of the agent", len(runs))
	}
	typed := regexp.MustCompile(`(?m)^> (.+\n)`)
	input := ""
	for _, m := range typed.FindAllStringSubmatch(runs[0], -1) {
		input += m[1]
	}
	program, dir := build(t, "agent"), t.TempDir()
	c := startAgent(t, program, dir, input)
	c.until("approve chat\n")
	same(t, typed.ReplaceAllString(runs[0], "> "), c.got.String())
	c.kill()
	if refunds(t, dir) != 0 {
		t.Error("a refund without an approval")
	}
	approve(t, filepath.Join(dir, "support"))
	same(t, runs[1], startAgent(t, program, dir, "").end())
	if n := refunds(t, dir); n != 1 {
		t.Errorf("%d refunds", n)
	}
}

// The agent is killed at each new part of its output, also while it waits for the review
// and after the refund. It goes on each time, and pays once.
func TestAgentKilledAnywhere(t *testing.T) {
	t.Parallel()
	program, dir := build(t, "agent"), t.TempDir()
	parts := []string{"Let", "→ find_order", "← order", "I ask", "→ refund", "a person", "approve chat", "← paid", "Here is"}
	kills, input := 0, "Please refund A1.\n"
	for {
		c := startAgent(t, program, dir, input)
		input = ""
		i := c.until(parts...)
		if i >= 0 && parts[i] == "approve chat" {
			approve(t, filepath.Join(dir, "support")) // the agent sees it and goes on
			i = c.until("← paid")
		}
		if i < 0 {
			if got := c.end(); !strings.Contains(got, "finished, 1 refunds") {
				t.Errorf("the last run:\n%s", got)
			}
			break
		}
		c.kill()
		kills++
		parts = slices.DeleteFunc(parts, func(part string) bool { return strings.Contains(c.got.String(), part) })
	}
	if n := refunds(t, dir); n != 1 || kills < 6 {
		t.Errorf("%d refunds, %d kills", n, kills)
	}
}

// Both kinds of APIs answer the agent.
func TestAgentWithAnAPI(t *testing.T) {
	t.Parallel()
	program := build(t, "agent")
	for kind, stream := range map[string]string{
		"openai": `data: {"choices":[{"delta":{"content":"Hello!"},"finish_reason":"stop"}]}

data: [DONE]

`,
		"anthropic": `data: {"type":"message_start","message":{"role":"assistant","content":[],"usage":{"input_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello!"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, stream)
		}))
		got := startAgent(t, program, t.TempDir(), "Hi.\n", "-model", kind+":m", "-url", server.URL).end()
		server.Close()
		same(t, "> Hello!\n> \nfinished, 0 refunds", got)
	}
}

// The agent of README.md is examples/firstagent, has at most 25 lines, and answers; a
// second run sends the same input and gets the same answer.
func TestFirstAgent(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../README.md")
	check(t, err)
	code, err := os.ReadFile("firstagent/main.go")
	check(t, err)
	_, code, _ = bytes.Cut(code, []byte("again: it goes on.\n"))
	if lines := strings.Count(string(code), "\n"); lines > 25 {
		t.Errorf("the agent has %d lines", lines)
	}
	if !strings.Contains(string(page), "```go\n"+string(code)+"```\n") {
		t.Error("README.md does not have the code of examples/firstagent")
	}
	program, dir := build(t, "firstagent"), t.TempDir()
	for range 2 {
		cmd := exec.Command(program)
		cmd.Dir = dir
		out, err := cmd.Output()
		check(t, err)
		same(t, "Your parcel is in Leipzig. <nil>", string(out))
	}
	l := eventlog.Open(jsonl.New(filepath.Join(dir, "logs")))
	defer l.Close()
	history, err := projection.Load(t.Context(), l, "order-42", projection.History())
	check(t, err)
	messages, err := history.State.Messages()
	check(t, err)
	if len(messages) != 4 {
		t.Errorf("the session has %d messages", len(messages))
	}
}
