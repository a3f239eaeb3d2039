package document

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/records"
)

// Owns declares the ids that owned finds in the beginning of a source. An unreadable source
// has none: its import reports the error.
func Owns(src interop.Source, owned func(begin []byte) []string) (ids interop.IDs) {
	if begin, err := src.Head(); err == nil {
		ids.Owns = owned(begin)
	}
	return ids
}

// File is the file of an import.
type File struct {
	Path string // absolute; for standard input, the source's name
	Stem string // the first part of an id that the file gives to a session
}

// NewFile describes the file of a source.
func NewFile(src interop.Source) File {
	f := File{Path: src.Name}
	if _, err := os.Stat(src.Name); err == nil {
		if path, err := filepath.Abs(src.Name); err == nil {
			f.Path = path
		}
	}
	base := filepath.Base(src.Name)
	f.Stem = Name(strings.TrimSuffix(base, filepath.Ext(base)))
	return f
}

// Session is the id of a session whose name is unique in its file, or empty. The id
// is the name, or else the name of the file, and a digest of the path. So a file
// that moves holds new sessions.
func (f *File) Session(name string) string { return f.id(cmp.Or(Name(name), f.Stem), name) }

// Inner is the id of one of several sessions of a file.
func (f *File) Inner(name string) string { return f.id(f.Stem+"-"+Name(name), name) }

// Folder is the id of a session whose files are in a folder with the name, beside
// the file's other sessions.
func (f *File) Folder(name string) string {
	folder := File{Path: filepath.Dir(f.Path)}
	return folder.id(Name(name), name)
}

func (f *File) id(text, name string) string {
	sum := sha256.Sum256([]byte(f.Path + "\x00" + name))
	return cmp.Or(strings.Trim(text, "-"), "session") + "-" + hex.EncodeToString(sum[:4])
}

// Name makes a text a part of an id: 40 ASCII letters, digits, dots, underscores
// and dashes at most.
func Name(s string) string {
	const most = 40
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '.':
			return r
		}
		return '-'
	}, s)
	return strings.Trim(name[:min(len(name), most)], "-.")
}

// Elements splits an array in the value of rec into records.
func Elements(rec *records.Record, array jsontext.Value) ([]records.Record, error) {
	values, err := rawjson.Elements(array)
	if err != nil {
		return nil, err
	}
	all := make([]records.Record, 0, len(values))
	var at Cursor
	for _, v := range values {
		all = append(all, at.Element(rec, v, v))
	}
	return all, nil
}

// Cursor counts the lines of the values of one record after the other. The zero Cursor is
// ready for use.
type Cursor struct {
	rec   *records.Record
	start int // of the newest value
	line  int64
}

// Element is the record of a value in rec. made is the value that the importer made of
// it.
func (c *Cursor) Element(rec *records.Record, v, made jsontext.Value) records.Record {
	start, ok := offsetIn(rec.Value, v)
	if !ok || rec.Repaired {
		start = 0
	}
	if rec != c.rec || start < c.start {
		*c = Cursor{rec: rec, line: rec.Line}
	}
	c.line += int64(bytes.Count(rec.Value[c.start:start], []byte{'\n'}))
	c.start = start
	return records.Record{
		Source: rec.Source, Line: c.line, Offset: rec.Offset + int64(start), Value: made,
		Digest: event.DigestOf(v), Size: int64(len(v)), Repaired: rec.Repaired,
	}
}

// Time parses a time; UTC if it has no zone, zero if it is invalid.
func Time(text string) time.Time {
	if at := records.Time(text); !at.IsZero() {
		return at
	}
	at, _ := time.Parse("2006-01-02T15:04:05", text) // zero if invalid
	return at
}

// offsetIn is the offset of v in whole, if v is a slice of its bytes.
func offsetIn(whole, v jsontext.Value) (start int, ok bool) {
	if len(whole) == 0 || len(v) == 0 {
		return 0, false
	}
	start = int(uintptr(unsafe.Pointer(&v[0])) - uintptr(unsafe.Pointer(&whole[0])))
	return start, start >= 0 && start+len(v) <= len(whole)
}
