package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
)

// versions is what the version command prints.
type versions struct {
	Version string `json:"version"`
	Format  int    `json:"format"`
	Go      string `json:"go"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of logtool and of the format it writes",
		Args:  between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := versions{Version: "devel", Format: event.FormatVersion, Go: runtime.Version()}
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
				v.Version = info.Main.Version
			}
			p := a.printer()
			if a.json {
				if err := p.value(v); err != nil {
					return err
				}
				return p.flush()
			}
			p.printf("logtool %s, format %d, %s\n", v.Version, v.Format, v.Go)
			return p.flush()
		},
	}
}
