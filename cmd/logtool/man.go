package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes manual pages; packagers call it.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages, one per command",
		Long: `Write manual pages into a folder, one per command: logtool.1, logtool-ls.1 and
so on. Put them where man looks, for instance ~/.local/share/man/man1.`,
		Example: `  logtool man ~/.local/share/man/man1 && man logtool-import`,
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			day := a.now().UTC().Truncate(24 * time.Hour)
			header := &doc.GenManHeader{Section: "1", Source: "convlog", Manual: "convlog", Date: &day}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			written, err := filepath.Glob(filepath.Join(args[0], "logtool*.1"))
			if err != nil {
				return err
			}
			p := a.printer()
			p.printf("%s in %s\n", count(int64(len(written)), "page"), clean(args[0]))
			return p.flush()
		},
	}
}
