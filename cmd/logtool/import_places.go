package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/interop"
)

// transcriptFolders are the folders of programs: folder in the folder that the
// variable names, else in home/folder below the home folder. One is a database. A folder
// of another system does not exist, so each system looks for all.
var transcriptFolders = []struct{ format, variable, home, folder string }{
	{"claude", "CLAUDE_CONFIG_DIR", ".claude", "projects"},
	{"claude", "XDG_CONFIG_HOME", ".config", "claude/projects"},
	{"codex", "CODEX_HOME", ".codex", "sessions"},
	{"codex", "CODEX_HOME", ".codex", "archived_sessions"},
	{"pi", "PI_CODING_AGENT_DIR", ".pi/agent", "sessions"},
	{"gemini", "", ".gemini", "tmp"},
	{"opencode", "XDG_DATA_HOME", ".local/share", "opencode/opencode.db"},
	{"opencode", "XDG_DATA_HOME", ".local/share", "opencode/storage"},
	{"cline", "CLINE_DATA_DIR", ".cline/data", "tasks"},
	{"cline", "CLINE_DATA_DIR", ".cline/data", "sessions"},
	{"cline", "XDG_CONFIG_HOME", ".config", "Code/User/globalStorage/saoudrizwan.claude-dev/tasks"},
	{"cline", "XDG_CONFIG_HOME", ".config", "Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks"},
	{"cline", "", "Library/Application Support", "Code/User/globalStorage/saoudrizwan.claude-dev/tasks"},
	{"cline", "", "Library/Application Support", "Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks"},
	{"cline", "APPDATA", "AppData/Roaming", "Code/User/globalStorage/saoudrizwan.claude-dev/tasks"},
	{"cline", "APPDATA", "AppData/Roaming", "Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks"},
	{"openhands", "OPENHANDS_CONVERSATIONS_DIR", ".openhands/conversations", ""},
	{"openhands", "OPENHANDS_PERSISTENCE_DIR", ".openhands", "conversations"},
	{"openhands", "FILE_STORE_PATH", ".openhands", "sessions"},
	{"mini-swe-agent", "MSWEA_GLOBAL_CONFIG_DIR", ".config/mini-swe-agent", ""},
	{"mini-swe-agent", "MSWEA_GLOBAL_CONFIG_DIR", "Library/Application Support/mini-swe-agent", ""},
	{"mini-swe-agent", "LOCALAPPDATA", "AppData/Local", "mini-swe-agent/mini-swe-agent"},
}

// transcriptFolder is a folder of a program that exists.
type transcriptFolder struct {
	Folder string `json:"folder"`
	Format string `json:"format"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// known finds the transcript folders that exist.
func (a *app) known(ctx context.Context, formats []interop.Format) ([]transcriptFolder, error) {
	var known []transcriptFolder
	seen := map[string]bool{}
	for _, place := range transcriptFolders {
		root := a.getenv(place.variable)
		if place.variable == "" || root == "" {
			root = filepath.Join(a.home(), place.home)
		}
		dir := filepath.Join(root, place.folder)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() && filepath.Ext(dir) != ".db" || seen[dir] {
			continue
		}
		seen[dir] = true
		for _, format := range formats {
			if format.Name() != place.format {
				continue
			}
			found, err := interop.Find(ctx, []interop.Format{format}, []string{dir})
			if err != nil {
				return nil, err
			}
			known = append(known, transcriptFolder{dir, place.format, len(found.Files()), found.Bytes()})
		}
	}
	if len(known) == 0 {
		return nil, errors.New("no folder of a known program exists: name a file or folder; see logtool import --help")
	}
	return known, nil
}

func dirsOf(known []transcriptFolder) (dirs []string) {
	for _, place := range known {
		dirs = append(dirs, place.Folder)
	}
	return dirs
}

// printKnown prints the folders, and the command that imports them.
func (a *app) printKnown(known []transcriptFolder) error {
	if len(known) == 0 {
		return nil
	}
	command := a.commandLine("import --known")
	return printRows(a, known, func(p *printer) {
		var cells [][]string
		files := 0
		for _, place := range known {
			files += place.Files
			cells = append(cells, []string{clean(place.Folder), place.Format, thousands(place.Files), size(place.Bytes)})
		}
		p.Print(term.Table{Heading: []string{"FOLDER", "FORMAT", "FILES", "SIZE"}, Rows: cells, Right: []int{2, 3}, Ends: []string{"FOLDER"}})
		if files == 0 {
			p.Printf("\nThere is no transcript in these folders: name another folder or file to import.\n")
			return
		}
		p.Printf("\nNothing was imported. `%s` imports all of it; name a folder or file to import only that.\n", command)
	})
}
