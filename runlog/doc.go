// Package runlog summarizes the runs of a session: its turns, model calls, tool calls,
// child runs and costs.
//
// Load returns a Run, a tree of turns and ops. Run.Log, Run.OpTree and Run.Episodes
// convert it to other forms. Package stats counts costs, tokens and events. Package sink
// writes the costs and the op trees of sessions to files.
package runlog
