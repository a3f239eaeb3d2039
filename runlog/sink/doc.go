// Package sink gives the costs and the op trees of sessions to files and functions.
//
// A Ledger writes the costs of sessions to a file, and an OpTreeFolder their op trees.
// Sinks give both at the end of a run, and survive sinks that fail or block.
//
// # Ledgers
//
// A ledger is JSON Lines, a LedgerEntry for each event that changes the spending. A writer
// locks the file (flock), reads the lines that others appended, truncates the rest of an
// interrupted write after the last newline, writes and syncs its lines, and then appends an
// accounting_flushed to the session. Its through is the last accounted seq. An event with a
// line never gets a second one.
//
// # Op trees
//
// An op tree is gzip JSON {version, reason, sessionId, originId, timestamp, snapshot:
// {version, opTree}}, with times in milliseconds, 0 for none. An effect is one op. Its
// attempts are the attempts before the last one, reviews the questions to a person, pauses
// the hibernations that waited for it, and logs the references to raw requests and answers.
// The childSessions of an op have the state of the child (started, blocked, …) and the
// interruptIds of the reviews that it waits for. The reason is subagent_finish after a
// child, and final at the end of a run.
//
// A folder has the newest op tree of each session, <name>.json.gz, with the name of
// docs/FORMAT.md, chapter 9. A writer locks <name>.json.gz.tmp, writes and syncs it, and
// renames it.
package sink
