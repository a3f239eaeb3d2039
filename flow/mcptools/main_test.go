package mcptools_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/convlog/convlog/flow/mcptools"
)

// The test binary is also the MCP server and the agent of the tests.
const (
	roleEnv  = "CONVLOG_MCP_ROLE"
	dirEnv   = "CONVLOG_MCP_DIR"
	storeEnv = "CONVLOG_MCP_STORE"
	turnsEnv = "CONVLOG_MCP_TURNS"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "server":
		if err := newServer(os.Getenv(dirEnv)).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
	case "agent":
		if err := runAgent(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

type arguments struct {
	N int `json:"n"`
}

// newServer is a server whose tools write a line to the diary in dir before they answer.
func newServer(dir string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	add := func(name string, a *mcp.ToolAnnotations, f func(n int) (*mcp.CallToolResult, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "The tool " + name + ".", Annotations: a}, func(_ context.Context, r *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, any, error) {
			if err := note(dir, fmt.Sprint(name, " ", r.Params.Meta["convlog/idempotency_key"])); err != nil {
				return nil, nil, err
			}
			time.Sleep(rand.N(10 * time.Millisecond)) // so that a kill meets some calls
			result, err := f(in.N)
			return result, nil, err
		})
	}
	answer := func(c ...mcp.Content) (*mcp.CallToolResult, error) { return &mcp.CallToolResult{Content: c}, nil }
	add("look", readOnly, func(n int) (*mcp.CallToolResult, error) { return answer(&mcp.TextContent{Text: fmt.Sprint("saw ", n)}) })
	add("pay", nil, func(n int) (*mcp.CallToolResult, error) {
		return answer(&mcp.TextContent{Text: fmt.Sprint("paid ", n)})
	})
	add("picture", readOnly, func(int) (*mcp.CallToolResult, error) {
		return answer(&mcp.ImageContent{MIMEType: "image/png", Data: []byte("png")}, &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x", Text: "inner"}})
	})
	add("fail", readOnly, func(int) (*mcp.CallToolResult, error) { return nil, fmt.Errorf("no such file") })
	die := func(name string) func(int) (*mcp.CallToolResult, error) {
		return func(int) (*mcp.CallToolResult, error) {
			if lines(dir, name) == 1 {
				os.Exit(1)
			}
			return answer(&mcp.TextContent{Text: "alive"})
		}
	}
	add("die", readOnly, die("die"))
	add("die_once", nil, die("die_once"))
	return s
}

func diary(dir string) string { return filepath.Join(dir, "diary.txt") }

func note(dir, line string) error {
	f, err := os.OpenFile(diary(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, line)
	return err
}

// lines counts the lines of the diary that begin with a word.
func lines(dir, word string) (n int) {
	raw, _ := os.ReadFile(diary(dir)) // it may be missing
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(strings.TrimSpace(line)+" ", word+" ") {
			n++
		}
	}
	return n
}

// stdio is the server as a process of its own.
func stdio(dir string) *mcptools.Server {
	return &mcptools.Server{Name: "test", Transport: func() mcp.Transport {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleEnv+"=server", dirEnv+"="+dir)
		return &mcp.CommandTransport{Command: cmd}
	}}
}
