// Package formats lists the formats that can be imported.
package formats

import (
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
