package opencode

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/interop/internal/head"
)

// The folders of the storage: session/<project>/<session>.json,
// message/<session>/<message>.json and part/<message>/<part>.json.
const (
	storageFolder = "storage"
	sessionFolder = "session"
	messageFolder = "message"
	partFolder    = "part"
)

// errAlone: a message or a part is there without its session.
var errNoSession = errors.New("its session is not in the storage")

// stored is what a file of the storage holds, by its path: a session, a message or a
// part, of what the folder that it is in names; empty for other files.
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

// isStored reports whether a file is one of the storage.
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

// Gathered is the file of the session that a message or a part belongs to.
func (Format) Gathered(path string, begin []byte) string {
	root, kind, _ := stored(path)
	if session := head.Begins(begin).Text("sessionID"); kind == partFolder && session != "" {
		return sessionFile(root, session)
	}
	return sessionOf(path)
}

// sessionOfMessage is the session of a message; empty if it is not in the storage.
func sessionOfMessage(root, message string) string {
	if file := findFile(filepath.Join(root, messageFolder), message); file != "" {
		return filepath.Base(filepath.Dir(file))
	}
	return ""
}

// sessionFile is the file of a session; empty if it is not in the storage.
func sessionFile(root, session string) string {
	return findFile(filepath.Join(root, sessionFolder), session)
}

// inSome is the file of that name in one of the folders in a folder; empty if none
// has it.
func findFile(folder, name string) string {
	if name == "" || name != filepath.Base(name) {
		return ""
	}
	entries, _ := os.ReadDir(folder) // there may be none
	for _, entry := range entries {
		file := filepath.Join(folder, entry.Name(), name+".json")
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file
		}
	}
	return ""
}

// sessionOf is the file of the session that a file of the storage belongs to; empty
// if it is not there.
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
