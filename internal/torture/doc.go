// Package torture has only tests. They kill and stop processes that append to one
// store, at random moments and concurrently, while readers and watchers read it. No
// acknowledged event may be lost.
//
// The steps of a writer depend only on a seed, the writer's number and the step's
// number. So a process reports only the numbers of acknowledged steps, the successor of
// a killed process repeats the interrupted step, and each event that is read can be
// compared with its expected content.
//
// An agent is killed in the same way: its turns depend only on a seed and the
// turn's number, and its effects write into a file beside the log what really ran. In the
// end the session must be the same as without kills. So must the sessions of its children,
// if it has any.
//
// The size of the tests is the default of the flags: see package testsize. Longer forms:
//
//	go test ./internal/torture -run 'TestKill$' -torture.kills 1000 -timeout 30m
//	go test ./internal/torture -run TestProcesses -torture.steps 2000 -timeout 30m
//	go test ./internal/torture -run TestKillFlow -torture.kills 300 -torture.turns 200 -timeout 30m
//	go test ./internal/torture -run TestKillFamily -torture.kills 300 -torture.turns 50 -timeout 30m
//	go test ./internal/torture -run TestManySessions -torture.sessions 1000
//	go test ./internal/torture -run TestReadersDuringIncidents -torture.incidents 500 -timeout 30m
//
// The test of a full disk needs a small file system: see the program diskfull.
//
// A failure prints the seed. -torture.seed repeats the steps, but not the moments of
// the kills.
package torture
