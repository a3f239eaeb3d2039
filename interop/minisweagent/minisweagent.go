// Package minisweagent imports the trajectories that mini-SWE-agent leaves behind
// (<instance>.traj.json, one JSON document each): what was said in messages, and
// what is known of the run in info. The first versions wrote the list of messages
// alone, which is known by the file's name.
//
// Each message becomes a message_added. Where the agent speaks in plain text, the
// command in its code block becomes a call of the tool "bash", and what the user
// says next the call's result; the text stays in the extra. Messages of
// Responses become one for each of their items, of one group. Tokens are those of
// the provider's response, which stays in the extra; the cost is the message's, and
// what the run took beyond that becomes a step_completed. The message that ends
// the run is kept raw as "mini-swe-agent:exit", and the info, as it is at the end, as
// "mini-swe-agent:info".
//
// The id of a session is the instance's in a document that names it, with digits of
// the file's path, as several runs may be of one instance; else the session is
// named by the file alone. Runs that no file was named for overwrite each other: of
// these a session is named by its task, too. A document that is cut off is refused.
package minisweagent

import (
	"context"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
)

// Name is the name of the format.
const Name = "mini-swe-agent"

// Format imports trajectories of mini-SWE-agent. The zero value is ready for use.
type Format struct{}

// Name is "mini-swe-agent".
func (Format) Name() string { return Name }

// Detect looks for the name of the format, or of what wrote it; a list of messages
// must be in a file whose name ends in .traj.json.
func (Format) Detect(name string, begin []byte) bool {
	h := head.Begins(begin)
	if head.IsArray(begin) {
		return strings.HasSuffix(name, ".traj.json") && h.Has("role") && (h.Has("content") || h.Has("tool_calls"))
	}
	return strings.HasPrefix(h.Text("trajectory_format"), Name) || h.In("info").Has("mini_version")
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	return document.Import(ctx, log, src, Name, read)
}
