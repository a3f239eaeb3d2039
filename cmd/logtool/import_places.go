package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/interop"
)

// places are the folders where programs keep their transcripts: below what a
// variable of the environment names, if it is set, else below the home folder.
var transcriptFolders = []struct{ format, variable, home, folder string }{
	{"claude", "CLAUDE_CONFIG_DIR", ".claude", "projects"},
	{"claude", "XDG_CONFIG_HOME", ".config", "claude/projects"},
	{"codex", "CODEX_HOME", ".codex", "sessions"},
	{"codex", "CODEX_HOME", ".codex", "archived_sessions"},
	{"pi", "PI_CODING_AGENT_DIR", ".pi/agent", "sessions"},
	{"gemini", "", ".gemini", "tmp"},
	{"opencode", "XDG_DATA_HOME", ".local/share", "opencode/storage"},
	{"openhands", "OPENHANDS_CONVERSATIONS_DIR", ".openhands/conversations", ""},
	{"openhands", "OPENHANDS_PERSISTENCE_DIR", ".openhands", "conversations"},
	{"openhands", "FILE_STORE_PATH", ".openhands", "sessions"},
	{"mini-swe-agent", "MSWEA_GLOBAL_CONFIG_DIR", ".config/mini-swe-agent", ""},
	{"mini-swe-agent", "MSWEA_GLOBAL_CONFIG_DIR", "Library/Application Support/mini-swe-agent", ""},
}

// knownPlace is one of them that is there.
type transcriptFolder struct {
	Folder string `json:"folder"`
	Format string `json:"format"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// known looks into the places of the formats.
func (a *app) known(ctx context.Context, formats []interop.Format) ([]transcriptFolder, error) {
	var known []transcriptFolder
	seen := map[string]bool{}
	for _, place := range transcriptFolders {
		root := a.getenv(place.variable)
		if place.variable == "" || root == "" {
			root = filepath.Join(a.getenv("HOME"), place.home)
		}
		dir := filepath.Join(root, place.folder)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || seen[dir] {
			continue
		}
		seen[dir] = true
		for _, format := range formats {
			if format.Name() != place.format {
				continue
			}
			found, err := interop.Find(ctx, []interop.Format{format}, []string{dir}, interop.Options{})
			if err != nil {
				return nil, err
			}
			known = append(known, transcriptFolder{dir, place.format, len(found.Files()), found.Bytes()})
		}
	}
	if len(known) == 0 {
		return nil, errors.New("none of the folders is there where programs keep their transcripts: name a file or folder; see logtool import --help")
	}
	return known, nil
}

func dirsOf(known []transcriptFolder) (dirs []string) {
	for _, place := range known {
		dirs = append(dirs, place.Folder)
	}
	return dirs
}

// printKnown says what there is to import, and how.
func (a *app) printKnown(known []transcriptFolder) error {
	if len(known) == 0 {
		return nil
	}
	p := a.printer()
	if a.json {
		for _, place := range known {
			if err := p.value(place); err != nil {
				return err
			}
		}
		return p.flush()
	}
	var cells [][]string
	for _, place := range known {
		cells = append(cells, []string{clean(place.Folder), place.Format, thousands(int64(place.Files)), size(place.Bytes)})
	}
	p.table([]string{"FOLDER", "FORMAT", "FILES", "SIZE"}, cells, 2, 3)
	command := "logtool import --known"
	if a.store != "" {
		command = "logtool --store " + shellWord(a.store) + strings.TrimPrefix(command, "logtool")
	}
	p.printf("\nNothing was imported. `%s` imports all of it; name a folder or file to import only that.\n", command)
	return p.flush()
}
