// Package answers has the JSON of sessions, heads, trees, costs, differences, checks and runs. The commands
// of logtool print it with --json, and the API of package web answers with it.
package answers
