// Package adk stores the sessions, artifacts and memories of programs that use the Agent
// Development Kit (google.golang.org/adk/v2) in a log.
//
//	services := adk.New(log)
//	r, err := runner.New(runner.Config{
//		AppName: "desk", Agent: agent,
//		SessionService: services.Sessions, ArtifactService: services.Artifacts, MemoryService: services.Memory,
//	})
//
// An ADK session is a session of the log. Its id is adk/APP/USER/SESSION. Contents, function calls and
// function responses are messages, calls and results, so logtool shows, searches, counts, forks and redacts
// them. The other members of an ADK event are in the extra member of the message. The ADK event that Get
// returns equals the appended one, as JSON. docs/guide/adapters.md has the whole table.
//
// AppendEvent appends after the newest event, however old the session of the caller is: several processes
// may write to one session. An event with the id of one of the newest 1,024 events is stored once.
// Partial events and state keys with the prefix temp: are not stored.
package adk
