package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/interop"
)

// transcriptFolder is a folder of a program that exists.
type transcriptFolder struct {
	Folder string `json:"folder"`
	Format string `json:"format"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// known finds the transcript folders that exist, and counts their files if count says so.
func (a *app) known(ctx context.Context, formats []interop.Format, count bool) ([]transcriptFolder, error) {
	var known []transcriptFolder
	seen := map[string]bool{}
	for _, format := range formats {
		program, ok := format.(interface{ Folders() []interop.Folder })
		if !ok {
			continue
		}
		for _, folder := range program.Folders() {
			dir := a.pathOf(folder)
			if info, err := os.Stat(dir); err != nil || !info.IsDir() && filepath.Ext(dir) != ".db" || seen[dir] {
				continue
			}
			seen[dir] = true
			place := transcriptFolder{Folder: dir, Format: format.Name()}
			if count {
				found, err := interop.Find(ctx, []interop.Format{format}, []string{dir})
				if err != nil {
					return nil, err
				}
				place.Files, place.Bytes = len(found.Files()), found.Bytes()
			}
			known = append(known, place)
		}
	}
	if len(known) == 0 {
		return nil, errors.New("no folder of a known program exists: name a file or folder; see logtool import --help")
	}
	return known, nil
}

// pathOf is the path of a folder of a program.
func (a *app) pathOf(f interop.Folder) string {
	root := a.getenv(f.Variable)
	if f.Variable == "" || root == "" {
		root = filepath.Join(a.home(), f.Home)
	}
	return filepath.Join(root, f.Path)
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
