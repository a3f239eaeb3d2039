//go:build npm

package mcptools_test

import (
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/convlog/convlog/flow/mcptools"
)

// An agent uses a server of another SDK: the server "everything" from npm, which testdata/npm/test
// installs. Its tool get-sum only reads, and gzip-file-as-resource is reviewed.
func TestEverything(t *testing.T) {
	s := &mcptools.Server{Name: "everything", Transport: func() mcp.Transport {
		return &mcp.CommandTransport{Command: exec.Command("node", "testdata/npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js", "stdio")}
	}}
	a, tools := agentOf(t, s, `get-sum {"a":2,"b":40}`, `echo {"message":"hello"}`, `gzip-file-as-resource {"data":"data:text/plain,hello","name":"x.gz","outputType":"resource"}`)
	if len(tools) < 3 {
		t.Fatalf("%d tools", len(tools))
	}
	results := finish(t, a)
	if got := results["get-sum"].Content[0].Text; got != "The sum of 2 and 40 is 42." {
		t.Errorf("get-sum: %q", got)
	}
	if got := results["echo"].Content[0].Text; got != "Echo: hello" {
		t.Errorf("echo: %q", got)
	}
	if got := results["gzip-file-as-resource"]; got.IsError || len(got.Content[0].Data) == 0 {
		t.Errorf("gzip-file-as-resource: %+v", got)
	}
}
