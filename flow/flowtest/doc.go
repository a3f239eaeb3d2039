// Package flowtest tests an agent with recorded sessions. A replay runs the agent's turn
// function in a new log. Its models, tools and other effects do not run: they have the
// outcomes of the recording. The test fails at the first effect at which the code and the
// recording differ.
//
//	var update = flag.Bool("update", false, "record the sessions in testdata anew")
//
//	func TestRefund(t *testing.T) {
//		agent := newAgent()
//		if *update {
//			flowtest.Record(t, agent, "testdata/refund.jsonl", "refund", func(ctx context.Context, a *flow.Agent[state]) error {
//				_, err := a.Run(ctx, "refund", flow.Text("Please refund A1."))
//				return err
//			})
//		}
//		flowtest.Replay(t, agent, "testdata/refund.jsonl")
//	}
//
// Record runs the agent with the models and tools that it has: a Script, or real ones.
// A session of production is a recording, too: export it, or Run it from its log.
//
// # Recorded results
//
// Answers of models (a part is one delta), results of tools and other effects, also recorded
// errors, changes of the state inside effects, reviews with their answers, waits, inputs that
// begin or steer a turn, and aborts. Turn.Now, Turn.NewID, Turn.SnapshotID, keys and tokens
// are the recorded ones. A run that was killed, hibernated or tried an effect several times
// replays like an unbroken one. A failed turn that was retried replays like a turn that did
// not fail. The turns of a fork's parent are history. If the recording ends inside a turn, the
// replay ends there, without a divergence.
//
// A session without effects, for example an imported transcript, is served by position: the
// n-th request of a turn gets the n-th answer, and calls of tools are compared by order, name
// and arguments. Requests and final logs are not compared then. See Result.ByPosition.
//
// Review functions of tools run: they decide whether a person is asked. Functions of
// Options.Observe are not called.
//
// # Comparisons
//
// The kind, name, arguments and review of each effect, the size of a batch, the request of
// each call of a model, and the end of the turn. After the run, the events of the two
// sessions are compared as by replaytest.Compare: messages, states, artifacts, the class of
// effects, and ends of turns. Events of runners and of other programs are left out: claims,
// hibernations, snapshots, answers. Agent.Version may differ.
//
// A log has the messages, the model and the parameters of a request, and only a digest of its
// system text, tools and schema of the answer. So Record writes them to a file of prompts
// beside the recording, and a divergence shows the changed lines. Options.Update writes this
// file anew with the prompts of the code: that approves changed prompts without new answers.
//
// # Limits
//
// A rewind into a turn, a turn that other programs changed while nobody ran it, and a result
// that was erased are ErrNotServed. A fork inside a turn is replayed from the beginning of the
// turn: Turn.Session returns the fork, also where the recorded turn ran in the parent. Seqs of
// events differ, for example in the entries of Turn.History.
package flowtest
