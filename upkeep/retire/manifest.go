package retire

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/folder"
)

// manifest is the content of a manifest, as JSON. An archive has a manifest for each
// retirement. A session of a manifest is in the archive, and in its store no more, unless
// the retirement was interrupted or the session was used meanwhile.
type manifest struct {
	Manifest string `json:"manifest"` // manifestVersion
	// Retired is the time of the retirement.
	Retired time.Time `json:"retired"`
	// Before is the time before which the sessions were used last.
	Before   time.Time         `json:"before"`
	Sessions []manifestSession `json:"sessions"`
	// Parents are in the archive because forks need them, and were not retired.
	Parents []string `json:"parents,omitempty"`
}

// manifestSession is a retired session.
type manifestSession struct {
	Session string    `json:"session"`
	Parent  string    `json:"parent,omitzero"`
	Events  int64     `json:"events"`
	Seq     int64     `json:"seq"`
	Hash    string    `json:"hash"`
	Last    time.Time `json:"last_activity"`
}

// manifestVersion is the version of the form of manifests.
const manifestVersion = "convlog-retired/1"

// manifestTime is the time in the name of a manifest.
const manifestTime = "20060102T150405Z"

// WriteManifest writes a manifest of the plan's sessions into the folder of the archive, as
// JSON, and returns its path. A session of a manifest is in the archive, and in its store
// no more, unless the retirement was interrupted or the session was used meanwhile. The file is on disk when WriteManifest returns. It replaces no
// other manifest.
func (p *Plan) WriteManifest(dir string, now time.Time) (path string, err error) {
	m := manifest{Manifest: manifestVersion, Retired: now.UTC(), Before: p.Before.UTC(), Parents: p.Parents}
	for _, s := range p.Sessions {
		m.Sessions = append(m.Sessions, manifestSession{s.ID, s.Parent, s.Events, s.Head.Seq, s.Head.Hash.String(), s.Last.UTC()})
	}
	text, err := json.Marshal(m, jsontext.WithIndent("  "))
	if err != nil {
		return "", fmt.Errorf("write manifest: %w", err)
	}
	for n := 1; ; n++ {
		path = filepath.Join(dir, "retired-"+now.UTC().Format(manifestTime)+suffix(n)+".json")
		err := writeNew(path, append(text, '\n'))
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("write manifest: %w", err)
		}
		return path, nil
	}
}

func suffix(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf("-%d", n)
}

// writeNew writes a new file, and syncs the file and its folder. A file that is not
// complete has another name.
func writeNew(path string, text []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".retired-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); err != nil { // Rename would replace another manifest
		return err
	}
	return folder.Sync(filepath.Dir(path))
}
