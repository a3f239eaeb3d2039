// Package runlog summarizes the runs of a session: its turns, model calls, tool calls,
// child runs and costs.
//
//	run, err := runlog.Load(ctx, log, "order-42")
//	for _, turn := range run.Turns {
//		fmt.Println(turn.Index, turn.Status, len(turn.Ops), turn.Spend.Cost)
//	}
//
// Load returns a Run, a tree of turns and ops. Run.Log, Run.OpTree and Run.Episodes
// convert it to other forms. Package stats counts costs, tokens and events. Package sink
// writes the costs and the op trees of sessions to files.
package runlog
