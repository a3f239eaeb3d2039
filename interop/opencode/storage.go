package opencode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
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
var errAlone = errors.New("its session is not in the storage")

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
	if file := inSome(filepath.Join(root, messageFolder), message); file != "" {
		return filepath.Base(filepath.Dir(file))
	}
	return ""
}

// sessionFile is the file of a session; empty if it is not in the storage.
func sessionFile(root, session string) string {
	return inSome(filepath.Join(root, sessionFolder), session)
}

// inSome is the file of that name in one of the folders in a folder; empty if none
// has it.
func inSome(folder, name string) string {
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

// storage reads a session from the files that it is kept in, as it would have been
// exported.
func storage(src interop.Source) iter.Seq2[interop.Record, error] {
	return func(yield func(interop.Record, error) bool) {
		root, _, _ := stored(src.Name)
		rec := interop.Record{Source: src.Name, Line: 1}
		g := gatherer{root: root}
		info := g.content(src)
		if info == nil {
			yield(rec, g.refused[0])
			return
		}
		rec.Value = g.session(info, strings.TrimSuffix(filepath.Base(src.Name), ".json"))
		for _, refused := range g.refused {
			if !yield(interop.Record{}, refused) {
				return
			}
		}
		rec.Digest, rec.Size = event.DigestOf(rec.Value), int64(len(rec.Value))
		yield(rec, nil)
	}
}

// gatherer gathers the files of a session.
type gatherer struct {
	root    string
	refused []*interop.RecordError // files that cannot be read
}

// session puts a session together. What was said is in the order of the ids.
func (g *gatherer) session(info jsontext.Value, id string) jsontext.Value {
	var messages []jsontext.Value
	for _, m := range g.files(messageFolder, id) {
		said := rawjson.Member{Name: "parts", Value: list(g.values(partFolder, m.id))}
		messages = append(messages, rawjson.NonEmpty([]rawjson.Member{{Name: "info", Value: m.value}, said}))
	}
	return rawjson.NonEmpty([]rawjson.Member{{Name: "info", Value: info}, {Name: "messages", Value: list(messages)}})
}

// kept is a file of the storage.
type kept struct {
	id    string
	value jsontext.Value
}

// files are those of a folder, ordered by their ids.
func (g *gatherer) files(kind, of string) (all []kept) {
	dir := filepath.Join(g.root, kind, of)
	entries, _ := os.ReadDir(dir) // there may be none
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		src := interop.Source{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
		if v := g.content(src); v != nil {
			all = append(all, kept{id, v})
		}
	}
	return all
}

func (g *gatherer) values(kind, of string) (all []jsontext.Value) {
	for _, file := range g.files(kind, of) {
		all = append(all, file.value)
	}
	return all
}

// content is the object in a file; nil if there is none, which is noted.
func (g *gatherer) content(src interop.Source) jsontext.Value {
	rec := interop.Record{Source: src.Name, Line: 1}
	for found, err := range interop.Values(src) {
		if err == nil && found.Value.Kind() == '{' {
			return found.Value.Clone()
		}
		var refused *interop.RecordError
		if errors.As(err, &refused) {
			err = refused.Cause
		}
		g.refused = append(g.refused, rec.Reject(fmt.Errorf("%s: %w", filepath.Base(src.Name), err)))
		return nil
	}
	g.refused = append(g.refused, rec.Reject(fmt.Errorf("%s: it is empty", filepath.Base(src.Name))))
	return nil
}

// list is a list of values.
func list(values []jsontext.Value) jsontext.Value {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, bytes.TrimSpace(v)...)
	}
	return append(b, ']')
}
