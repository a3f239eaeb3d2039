// Package formats lists the formats that can be imported.
package formats

import (
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/cline"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/entire"
	"github.com/convlog/convlog/interop/gemini"
	"github.com/convlog/convlog/interop/inspect"
	"github.com/convlog/convlog/interop/lists"
	"github.com/convlog/convlog/interop/minisweagent"
	"github.com/convlog/convlog/interop/oasst"
	"github.com/convlog/convlog/interop/opencode"
	"github.com/convlog/convlog/interop/openhands"
	"github.com/convlog/convlog/interop/pi"
	"github.com/convlog/convlog/interop/stream"
	"github.com/convlog/convlog/interop/sweagent"
	"github.com/convlog/convlog/interop/taubench"
)

// All returns the formats in the order of detection. Lists of messages come last,
// because many other files contain one.
func All() []interop.Format {
	return []interop.Format{
		claude.Format{}, codex.Format{}, pi.Format{}, gemini.Format{}, opencode.Format{}, cline.Format{}, openhands.Format{},
		sweagent.Format{}, minisweagent.Format{}, taubench.Format{}, inspect.Format{}, oasst.Format{}, entire.Format{}, stream.Format{},
		lists.Format{},
	}
}

// FileTools returns the tools of a format that read or change files. Formats that hold the
// transcripts of several programs, and sessions that were not imported, have the tools of all.
func FileTools(format string) files.Tools {
	all := files.Tools{}
	for _, f := range All() {
		x, ok := f.(interface{ FileTools() files.Tools })
		if !ok {
			continue
		}
		if f.Name() == format {
			return x.FileTools()
		}
		for name, tool := range x.FileTools() {
			if _, ok := all[name]; !ok {
				all[name] = tool
			}
		}
	}
	return all
}
