package opencode

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/interop/internal/head"
)

// The folders of the storage; see the package comment.
const (
	storageFolder = "storage"
	sessionFolder = "session"
	messageFolder = "message"
	partFolder    = "part"
)

// errNoSession rejects a message or a part without its session.
var errNoSession = errors.New("the file of its session is missing from the storage")

// stored splits the path of a file of the storage into the root, the kind of file, and
// the id of its folder. All are empty for other files.
func stored(path string) (root, kind, of string) {
	dir := filepath.Dir(path)
	root, kind = filepath.Dir(filepath.Dir(dir)), filepath.Base(filepath.Dir(dir))
	if filepath.Ext(path) != ".json" || filepath.Base(root) != storageFolder {
		return "", "", ""
	}
	switch kind {
	case sessionFolder, messageFolder, partFolder:
		return root, kind, filepath.Base(dir)
	}
	return "", "", ""
}

// isStored reports whether a file belongs to the storage.
func isStored(path string, h head.Head) bool {
	switch _, kind, _ := stored(path); kind {
	case sessionFolder:
		return h.Text("id") != "" && (h.Has("projectID") || h.Has("directory"))
	case messageFolder:
		return h.Has("id", "sessionID")
	case partFolder:
		return h.Has("id", "messageID")
	}
	return false
}

// Gathered returns the session file of a message or a part.
func (Format) Gathered(path string, begin []byte) string {
	root, kind, _ := stored(path)
	if session := head.Begins(begin).Text("sessionID"); kind == partFolder && session != "" {
		return sessionFile(root, session)
	}
	return sessionOf(path)
}

// sessionOfMessage returns the session id of a message; empty if the storage lacks it.
func sessionOfMessage(root, message string) string {
	if file := findFile(filepath.Join(root, messageFolder), message); file != "" {
		return filepath.Base(filepath.Dir(file))
	}
	return ""
}

// sessionFile returns the file of a session; empty if the storage lacks it.
func sessionFile(root, session string) string {
	return findFile(filepath.Join(root, sessionFolder), session)
}

// findFile returns the file with the name in one of the subfolders; empty if there is
// none.
func findFile(folder, name string) string {
	if name == "" || name != filepath.Base(name) {
		return ""
	}
	entries, _ := os.ReadDir(folder) // a missing folder is empty
	for _, entry := range entries {
		file := filepath.Join(folder, entry.Name(), name+".json")
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file
		}
	}
	return ""
}

// sessionOf returns the session file for a file of the storage; empty if it is missing.
func sessionOf(path string) string {
	root, kind, of := stored(path)
	switch kind {
	case sessionFolder:
		return path
	case partFolder:
		of = sessionOfMessage(root, of)
	}
	if of == "" {
		return ""
	}
	return sessionFile(root, of)
}
