// Package replaytest tests an agent with a recorded session. The recording answers
// for the model and the tools; the test fails at the first point where the agent's new
// session differs from the recorded one.
//
//	var update = flag.Bool("update", false, "record new sessions in testdata")
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
// # Comparison
//
// Events are compared one by one: type, cost, payload, metadata and unknown envelope
// members. Payloads are compared as JSON: the order of members does not matter, the
// digits of a number do. Ids, timestamps, salts, hashes, durations and the batching of
// events are not compared: they differ between any two runs.
//
// The ids and hashes of the run must map one to one to the recorded ids and hashes.
// For example, if two recorded events refer to one call, the two events of the run must
// refer to one call too. An id is a ULID, a UUID or hex digits of the usual lengths,
// anywhere, and any text in the payload members with ids of calls, responses, groups,
// parts, effects and sessions. A value that a program or a model put into a payload,
// for example the arguments of a call, has no such members. A seq in a payload must be
// the seq of the corresponding event.
//
// Of two redacted events only the type, the cost and the remaining members are
// compared. If one of the two is redacted, only type and cost are compared.
package replaytest
