// Package minisweagent imports trajectories of mini-SWE-agent (<instance>.traj.json,
// one JSON document each). A document holds the messages, and an info about the run.
// The first versions of the agent wrote only the list of messages; the file name
// identifies such a list.
//
// # Events
//
// Each message becomes a message_added. If the agent writes plain text, the command
// in its code block becomes a call of the tool "bash". The next user message becomes
// the result. The extra of the message holds the original text. A response of the
// Responses API becomes one message per item, all in one group.
//
// Token counts come from the provider's response, which stays in the extra. Costs
// come from the messages. The remaining cost of the run becomes a step_completed. The
// message that ends the run is stored raw as "mini-swe-agent:exit". The info is
// stored raw as "mini-swe-agent:info", at the end.
//
// # Session ids
//
// The session id consists of the instance id and a digest of the file's path, because
// one instance can have several runs. Without an instance id, the importer makes the
// id from the file name. Runs with the default file name overwrite each other: their
// id includes a digest of the task. A truncated document is rejected.
package minisweagent

import (
	"context"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
)

const formatName = "mini-swe-agent"

// Format imports trajectories of mini-SWE-agent. The zero value is ready for use.
type Format struct{}

// Name returns "mini-swe-agent".
func (Format) Name() string { return formatName }

// Folders returns the folders of the program.
func (Format) Folders() []interop.Folder {
	return []interop.Folder{
		{Variable: "MSWEA_GLOBAL_CONFIG_DIR", Home: ".config/mini-swe-agent"},
		{Variable: "MSWEA_GLOBAL_CONFIG_DIR", Home: "Library/Application Support/mini-swe-agent"},
		{Variable: "LOCALAPPDATA", Home: "AppData/Local", Path: "mini-swe-agent/mini-swe-agent"},
	}
}

// Detect checks the format name or the agent's version in a document. A list of
// messages must be in a file with the suffix .traj.json.
func (Format) Detect(name string, begin []byte) bool {
	h := head.Begins(begin)
	if head.IsArray(begin) {
		return strings.HasSuffix(name, ".traj.json") && h.Has("role") && (h.Has("content") || h.Has("tool_calls"))
	}
	return strings.HasPrefix(h.Text("trajectory_format"), formatName) || h.In("info").Has("mini_version")
}

// Import appends the events of the source that are not in the log yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	return document.Import(ctx, log, src, formatName, read)
}
