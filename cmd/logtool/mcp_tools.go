package main

// mcpTool is a tool of MCP: a command, and the flags that are parameters. The arguments of the command
// are parameters too.
type mcpTool struct {
	name, command string
	flags         []string
	fixed         []string // arguments of every call
	// key and begin are as in mcplog.Tool.
	key   []string
	begin string
	more  string // ends the description
}

// mcpTools are the tools of logtool mcp. A new tool is a row.
var mcpTools = []mcpTool{
	{name: "list", command: "ls", key: []string{"session"},
		flags: []string{"text", "since", "until", "source", "cwd", "model", "sort", "long"}},
	{name: "search", command: "search", key: []string{"session", "seq"}, fixed: []string{"--limit=0"},
		flags: []string{"role", "tool", "failed", "file", "type", "path", "since", "until", "source", "cwd", "model", "per-session", "context"},
		more:  `All words of text must be in one event; "double quotes" make a phrase.`},
	{name: "show", command: "show", key: []string{"seq"}, begin: "from",
		flags: []string{"from", "to", "type", "path", "limit"}, more: "limit shows the end of a session."},
	{name: "history", command: "history", flags: []string{"at", "turn"}},
	{name: "files", command: "files", flags: []string{"file", "at", "path", "diff", "print"}},
	{name: "cost", command: "cost", key: []string{"session", "name"},
		flags: []string{"turns", "per", "since", "until", "source", "cwd", "model"}},
}
