package minisweagent

import "github.com/convlog/convlog/internal/files"

// FileTools are the tools that read or change files.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{"bash": {Does: files.Runs, Text: "command"}}
