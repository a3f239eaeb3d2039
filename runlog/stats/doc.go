// Package stats counts the costs, tokens, events and calls of sessions.
//
//	report, err := stats.LoadCost(ctx, log, "order-42")
//
// Load counts the content of a session. LoadCost sums its costs by model, agent and turn.
// LoadTreeCost adds the costs of its child runs and forks. A Catalog keeps the counts of many sessions: it
// reads a session again only after it changed.
package stats
