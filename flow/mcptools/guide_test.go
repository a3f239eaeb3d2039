package mcptools_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/flow/mcptools"
)

// The code of the section about MCP in docs/guide/agents.md.
func bank(command string, args ...string) *mcptools.Server {
	return &mcptools.Server{
		Name:      "bank",
		Transport: func() mcp.Transport { return &mcp.CommandTransport{Command: exec.Command(command, args...)} },
		Rule: func(t *mcp.Tool, spec *flow.ToolSpec) {
			if t.Name == "pay" {
				spec.Review = func(_ context.Context, call event.Part) (*flow.Question, error) {
					return &flow.Question{Prompt: "Pay?", Detail: call.Arguments}, nil
				}
			}
		},
	}
}

func TestGuideTools(t *testing.T) {
	t.Setenv(roleEnv, "server") // of the processes that bank starts
	t.Setenv(dirEnv, t.TempDir())
	server := bank(os.Args[0])
	defer server.Close()
	tools, err := server.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, _ := agentOf(t, server, "look", "pay")
	asked := 0
	for _, tool := range tools {
		if tool.Review != nil {
			asked++
		}
	}
	results := finish(t, a)
	if !strings.HasPrefix(results["pay"].Content[0].Text, "paid") || asked == 0 {
		t.Errorf("%+v, %d reviewed tools", results, asked)
	}
	model := flowtest.Script{flowtest.Say("Hello.")}
	agent := &flow.Agent[state]{Name: "desk", Log: a.Log, Turn: flow.Chat[state](model, flow.Request{System: "Be kind."}, tools...)}
	if _, err := agent.Run(t.Context(), "t", flow.Text("Hello.")); err != nil {
		t.Fatal(err)
	}
}
