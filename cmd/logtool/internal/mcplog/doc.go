// Package mcplog serves the commands of logtool that read a log as tools of MCP, for agents.
//
// The rows of a tool are the values that its command prints with --json. An answer is one JSON
// document: everything that a session stored is inside a JSON string of it, with <, > and
// invisible characters as escapes. No text of a session can end the string, or look like a part
// of the answer.
//
// An answer has as many rows as fit into a budget of tokens, and a cursor to the next row. A row
// that is larger than the budget comes in parts.
package mcplog
