// Package sink gives the costs and the op trees of sessions to files and functions.
//
// A Ledger writes the costs of sessions to a file, and an OpTreeFolder their op trees.
// Sinks give both at the end of a run, and survive sinks that fail or block.
package sink
