// Package flow runs durable agents over a log. A turn continues after a kill at the effect
// where it was: the turn function is executed again from its top, and effects that have a
// result return it and do not run.
//
// The rules for turn functions: between effects, depend on the turn and on results of
// effects only; clocks, random numbers, settings and all else are effects, or Turn.Now and
// Turn.NewID; keep the order, names and arguments of effects; one effect at a time, or a
// Batch. Part 3 of docs/GUIDE.md explains them, and has the tasks.
package flow
