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
	"github.com/convlog/convlog/interop/internal/records"
)

// storage reads a session from the storage, in the layout of an exported document.
func storage(src interop.Source) iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		root, _, _ := stored(src.Name)
		rec := records.Record{Source: src.Name, Line: 1}
		g := gatherer{root: root}
		info := g.object(src)
		if info == nil {
			yield(rec, g.rejected[0])
			return
		}
		rec.Value = g.session(info, strings.TrimSuffix(filepath.Base(src.Name), ".json"))
		for _, refused := range g.rejected {
			if !yield(records.Record{}, refused) {
				return
			}
		}
		rec.Digest, rec.Size = event.DigestOf(rec.Value), int64(len(rec.Value))
		yield(rec, nil)
	}
}

// gatherer reads the files of a session.
type gatherer struct {
	root     string
	rejected []*records.RecordError // unreadable files
}

// session builds the document of a session, with messages and parts in order of their
// ids.
func (g *gatherer) session(info jsontext.Value, id string) jsontext.Value {
	var messages []jsontext.Value
	for _, m := range g.files(messageFolder, id) {
		parts := rawjson.Member{Name: "parts", Value: rawjson.Array(g.values(partFolder, m.id))}
		messages = append(messages, rawjson.NonEmpty([]rawjson.Member{{Name: "info", Value: m.value}, parts}))
	}
	return rawjson.NonEmpty([]rawjson.Member{{Name: "info", Value: info}, {Name: "messages", Value: rawjson.Array(messages)}})
}

// storedFile is a parsed file of the storage.
type storedFile struct {
	id    string
	value jsontext.Value
}

// files parses the files of a folder, in order of their ids.
func (g *gatherer) files(kind, of string) (all []storedFile) {
	dir := filepath.Join(g.root, kind, of)
	entries, _ := os.ReadDir(dir) // a missing folder is empty
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		src := interop.Source{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
		if v := g.object(src); v != nil {
			all = append(all, storedFile{id, v})
		}
	}
	return all
}

func (g *gatherer) values(kind, of string) (all []jsontext.Value) {
	for _, file := range g.files(kind, of) {
		all = append(all, bytes.TrimSpace(file.value))
	}
	return all
}

// object returns the object in a file. If there is none, it rejects the file and returns
// nil.
func (g *gatherer) object(src interop.Source) jsontext.Value {
	rec := records.Record{Source: src.Name, Line: 1}
	for found, err := range records.Values(src) {
		if err == nil && found.Value.Kind() == '{' {
			return found.Value.Clone()
		}
		var refused *records.RecordError
		if errors.As(err, &refused) {
			err = refused.Cause
		}
		g.rejected = append(g.rejected, rec.Reject(fmt.Errorf("%s: %w", filepath.Base(src.Name), err)))
		return nil
	}
	g.rejected = append(g.rejected, rec.Reject(fmt.Errorf("%s: the file is empty", filepath.Base(src.Name))))
	return nil
}
