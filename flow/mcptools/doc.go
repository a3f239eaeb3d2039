// Package mcptools gives the tools of an MCP server to an agent of package flow. It is a module
// of its own, so that the main module does not require the SDK of MCP.
//
// A Server connects over any transport of the SDK:
//
//	files := &mcptools.Server{Name: "files", Transport: func() mcp.Transport {
//		return &mcp.CommandTransport{Command: exec.Command("files-server", dir)}
//	}}
//	defer files.Close()
//	tools, err := files.Tools(ctx)
//	agent.Turn = flow.Chat[State](model, request, tools...)
package mcptools
