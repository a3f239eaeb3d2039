// Package torture has tests only: processes that append to one store
// are killed and stopped at any moment, beside each other, while readers and
// watchers look on, and nothing that was acknowledged may be lost.
//
// What a writer does follows from a seed, its number and the number of the
// step alone. So a process needs to report no more than the numbers of the
// steps that were acknowledged, whoever comes after a killed one repeats the
// step that it died in, and every event that is read, by whomever and
// whenever, can be held against what it must be.
//
// The tests take a short form by default. The long forms:
//
//	go test ./internal/torture -run TestKill -torture.kills 1000 -timeout 30m
//	go test ./internal/torture -run TestProcesses -torture.steps 2000 -timeout 30m
//	go test ./internal/torture -run TestReadersUnderFire -torture.incidents 500 -timeout 30m
//
// A full disk needs a small file system of its own, and is the program
// diskfull below.
//
// A failure prints the seed; -torture.seed repeats the steps with it, but not
// the moments of the kills.
package torture
