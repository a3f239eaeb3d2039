// Package flowhttp serves an agent over HTTP: a page sends inputs, follows the turn while it
// streams, answers reviews, and aborts. A reload, a second tab, another process and a restart
// of the server miss nothing, since every viewer follows the log.
//
// The paths, below the place where the handler is mounted; openapi.json describes each:
//
//	POST /sessions/{session}/inputs              store an input, and run it
//	GET  /sessions/{session}/events              follow the events (server-sent events)
//	GET  /sessions/{session}                     status, state, messages, open reviews
//	POST /sessions/{session}/answers             answer a review
//	POST /sessions/{session}/abort               abort the open turn
//	GET  /sessions/{session}/snapshots           the snapshots, newest first
//	GET  /sessions/{session}/snapshots/{id}      one snapshot, or latest
//	GET  /approvals                              the reviews that wait, of all sessions
//	POST /ai-sdk                                 a chat of the AI SDK: UI message stream
//	GET  /ai-sdk/{session}/stream                the newest answer again, from its start
//	GET  /ai-sdk/{session}/messages              the messages of a chat
//	POST /ag-ui                                  a run of AG-UI
//
// In the stream of events the id of a frame is the seq of an event, so a client that
// reconnects with Last-Event-ID gets each event once. Frames named delta are pieces of a
// message that is not finished: they have no id, and the next message of the session replaces
// them, also if it has another id, since a model call that was interrupted runs again. Only
// clients of the process that runs the turn get them.
//
// Reading starts nothing: a process that serves an agent also calls [flow.Agent.Serve], which
// continues the turns that a killed process left.
package flowhttp
