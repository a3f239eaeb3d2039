// Package flow runs durable agents over a log. After a kill, the turn function is executed
// again from its top. Effects with a recorded result return it and do not run, so the turn
// continues where it was.
//
//	agent := &flow.Agent[State]{Name: "shop", Log: log, Turn: flow.Chat[State](model, flow.Request{System: "Be kind."}, tools...)}
//	in := flow.Text("Where is my parcel?")
//	in.ID = "question-1" // after a restart the same input again, and not a new one
//	out, err := agent.Run(ctx, "order-42", in)
//
// A turn function keeps these rules:
//   - Between effects it depends on the turn and on results of effects only. Clocks, random
//     numbers and settings are effects, or Turn.Now and Turn.NewID.
//   - The order, names and arguments of its effects are the same in each execution.
//   - It runs one effect at a time, or a Batch.
//
// docs/guide/agents.md explains the rules, and shows the tasks.
package flow
