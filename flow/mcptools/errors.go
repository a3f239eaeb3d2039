package mcptools

import (
	"errors"
	"fmt"
)

// Error reports that a server gave no result for a call. An error that the tool itself
// reports is no *Error. Check the command or address of the server; after Died, check
// whether the tool ran.
type Error struct {
	Server string
	// Tool is the tool that was called, empty if none was.
	Tool string
	// Died reports that the connection ended during the call: the tool may have run.
	Died bool
	// NotRun reports that there was no connection: the tool has not run.
	NotRun bool
	Err    error
}

func (e *Error) Error() string {
	switch {
	case e.Died:
		return fmt.Sprintf("MCP server %q: the server died during the call of tool %q, which may have run: %v. Check outside whether it ran before you call it again", e.Server, e.Tool, e.Err)
	case e.NotRun:
		return fmt.Sprintf("MCP server %q: no connection, so no tool has run: %v. Check the command or the address of the server", e.Server, e.Err)
	case e.Tool != "":
		return fmt.Sprintf("MCP server %q: the server refuses the call of tool %q: %v. Check the arguments and the tools of the server", e.Server, e.Tool, e.Err)
	}
	return fmt.Sprintf("MCP server %q: %v", e.Server, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// died reports whether another attempt of a read-only tool makes sense.
func died(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Died || e.NotRun)
}
