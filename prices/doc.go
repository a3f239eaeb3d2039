// Package prices estimates the cost of model answers from their tokens.
//
//	cost, ok := prices.Builtin().Cost("claude-sonnet-4-5", at, usage)
//
// LoadCost of package runlog/stats sums the cost of a session.
//
// A Table has prices in dollars per million tokens. Builtin is part of the program; Read
// reads another one. A price has the day from which it holds, and may hold for long
// prompts only. All functions and methods may be called concurrently.
package prices
