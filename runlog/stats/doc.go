// Package stats counts the costs, tokens, events and calls of sessions.
//
// Load counts the content of a session, and LoadCost and LoadTreeCost its costs in several
// splits. A Catalog gives the counts of many sessions, and reads only those that changed.
package stats
