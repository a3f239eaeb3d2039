// Package genkit stores the snapshots of agents of Genkit (github.com/firebase/genkit/go, package ai/exp) in a
// log.
//
//	store := genkit.New[State](log)
//	agent := genkitx.DefineAgent(g, "desk", …, aix.WithSessionStore[State](store))
//
// A session of Genkit is a session of the log, genkit/SESSION. The messages of its snapshots are messages
// of the log, each stored once: a snapshot whose messages continue the newest ones adds the new
// messages, and any other snapshot is a branch from the last common message. Custom state and artifacts are custom states of
// the branch. So logtool shows, searches, forks and redacts the conversation. docs/guide/adapters.md has the whole table.
//
// A fork of a session is a session of Genkit: GetLatestSnapshot with the id of the fork returns a snapshot of its end.
package genkit
