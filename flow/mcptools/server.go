package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
)

// Server is an MCP server. It connects when it is needed, and again after the server died. Its
// methods and its tools may be used concurrently. The fields do not change after the first use.
type Server struct {
	// Name names the server in errors and in questions to a person.
	Name string
	// Transport makes the transport of a new connection, for example to a new process. It is
	// called again after a connection ended.
	Transport func() mcp.Transport
	// Rule changes a tool before an agent gets it, for example its class, its review, its retries
	// and its time-out; nil changes nothing.
	//
	// Before that, a tool with the readOnlyHint has the class pure and 3 attempts if the server
	// dies. Every other tool has the class unsafe_once and a review. Hints are claims of the server: give
	// a server that you do not trust a Rule that ignores them.
	Rule func(t *mcp.Tool, spec *flow.ToolSpec)

	mu      sync.Mutex
	session *mcp.ClientSession // nil without a connection
}

// attempts is the number of attempts of a read-only tool whose server dies.
const attempts = 3

// keyMeta is the member of _meta of a call that has the idempotency key of the effect: the same
// key at each attempt.
const keyMeta = "convlog/idempotency_key"

// Tools are the tools of the server. The error is an *Error.
func (s *Server) Tools(ctx context.Context) (tools []flow.ToolSpec, err error) {
	session, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, s.lost(session, &Error{Server: s.Name, Err: fmt.Errorf("list the tools: %w", err)})
		}
		spec, err := s.tool(t)
		if err != nil {
			return nil, err
		}
		tools = append(tools, spec)
	}
	return tools, nil
}

// Close ends the connection, and a process of the server.
func (s *Server) Close() error {
	s.mu.Lock()
	session := s.session
	s.session = nil
	s.mu.Unlock()
	if session == nil {
		return nil
	}
	return session.Close()
}

// tool makes a tool of the description that the server gives.
func (s *Server) tool(t *mcp.Tool) (flow.ToolSpec, error) {
	parameters, err := json.Marshal(t.InputSchema)
	if err != nil {
		return flow.ToolSpec{}, &Error{Server: s.Name, Tool: t.Name, Err: fmt.Errorf("the schema of the arguments: %w", err)}
	}
	spec := flow.ToolSpec{Name: t.Name, Description: t.Description, Parameters: jsontext.Value(parameters), Class: event.EffectUnsafeOnce,
		Review: func(context.Context, event.Part) (*flow.Question, error) {
			return &flow.Question{Prompt: fmt.Sprintf("Run tool %q of MCP server %q?", t.Name, s.Name)}, nil
		}}
	if t.Annotations != nil && t.Annotations.ReadOnlyHint {
		spec.Class, spec.Review, spec.Retry = event.EffectPure, nil, flow.Retry{Attempts: attempts, If: died}
	}
	spec.Run = func(ctx context.Context, call event.Part) ([]event.Part, error) { return s.call(ctx, t.Name, call) }
	if s.Rule != nil {
		s.Rule(t, &spec)
	}
	return spec, nil
}

// call calls a tool.
func (s *Server) call(ctx context.Context, tool string, call event.Part) ([]event.Part, error) {
	session, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	p := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(`{}`)}
	if len(call.Arguments) > 0 {
		p.Arguments = json.RawMessage(call.Arguments)
	}
	if run, ok := flow.FromContext(ctx); ok {
		p.Meta = mcp.Meta{keyMeta: run.Key}
	}
	result, err := session.CallTool(ctx, p)
	if err != nil {
		return nil, s.failed(ctx, session, tool, err)
	}
	parts, err := content(result)
	if err == nil && result.IsError {
		err = flow.Permanent(errors.New((&event.Message{Parts: parts}).Text()))
	}
	return parts, err
}

// failed is the error of a call without a result.
func (s *Server) failed(ctx context.Context, session *mcp.ClientSession, tool string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &Error{Server: s.Name, Tool: tool, Err: err}
	if errors.As(err, new(*jsonrpc.Error)) && !errors.Is(err, mcp.ErrSessionMissing) {
		return e // the server answered
	}
	e.Died = true
	return s.lost(session, e)
}

// connect returns the connection, a new one if there is none.
func (s *Server) connect(ctx context.Context) (*mcp.ClientSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		return s.session, nil
	}
	if s.Transport == nil {
		return nil, &Error{Server: s.Name, Err: errors.New("Server.Transport is missing")}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "convlog", Version: "1"}, nil)
	session, err := client.Connect(ctx, s.Transport(), nil)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &Error{Server: s.Name, Err: fmt.Errorf("connect: %w", err), NotRun: true}
	}
	s.session = session
	go func() {
		_ = session.Wait() // the next call connects again
		s.drop(session)
	}()
	return session, nil
}

// lost drops a connection after an error, which it returns.
func (s *Server) lost(session *mcp.ClientSession, err error) error {
	s.drop(session)
	go session.Close() // it may wait for the end of a process
	return err
}

func (s *Server) drop(session *mcp.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.session = nil
	}
}
