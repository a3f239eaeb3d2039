// Package replaytest tests an agent with a recorded session. The recording answers
// for the model and the tools; the test fails at the first point where the agent's new
// session differs from the recorded one.
//
//	var update = flag.Bool("update", false, "record the sessions of testdata anew")
//
//	func TestRefund(t *testing.T) {
//		recording := replaytest.Open(t, "testdata/refund.jsonl", replaytest.Options{Update: *update})
//		log := eventlog.Open(memory.New())
//		runAgent(t, log, "refund", replaytest.Model(recording, askModel), recording.Tool(runTool))
//		recording.Check(t, log, "refund")
//	}
//
// A recording is an export of a session (transfer.Export). Load and Compare do the
// comparison alone.
//
// # What counts
//
// Events are compared one by one: type, cost, payload, metadata and unknown
// envelope members. Payloads are compared as JSON: the order of members does not
// matter, the digits of a number do. Not compared is what differs between any
// two runs: ids, timestamps, salts, hashes, durations, and how events were
// batched.
//
// Ids and hashes may differ, but must do so alike throughout: where the
// recording names an event, a call or a turn again, the run must name the one that
// stands in its place. What counts as an id is a ULID, a UUID or hex digits of
// the usual lengths anywhere, and any text in the members of payloads that hold ids
// of calls, responses, groups, parts, effects and sessions. What a program or a
// model put into a payload, such as the arguments of a call, has no such
// members. A seq in a payload must be that of the event in its place.
//
// Of redacted events only type, cost and, if both are, what was kept counts.
package replaytest
