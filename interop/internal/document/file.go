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

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
)

// File is the file that is being imported.
type File struct {
	Path string // absolute; the name of what is no file
	Stem string // begins the ids of sessions without one
	// At is when it last changed; zero if it is no file.
	At time.Time
}

// NewFile looks at the file. What is no file, such as standard input, has no time
// and is known by its name.
func NewFile(src interop.Source) File {
	f := File{Path: src.Name}
	if info, err := os.Stat(src.Name); err == nil {
		f.At = info.ModTime().UTC().Truncate(time.Second)
		if path, err := filepath.Abs(src.Name); err == nil {
			f.Path = path
		}
	}
	base := filepath.Base(src.Name)
	f.Stem = Name(strings.TrimSuffix(base, filepath.Ext(base)))
	return f
}

// Session is the id of a session that has none of its own, or one that is only
// unique in its file: the name, or that of the file, and digits of the path. A
// file that moves holds other sessions.
func (f *File) Session(name string) string { return f.id(cmp.Or(Name(name), f.Stem), name) }

// Inner is the id of one of several sessions of the file.
func (f *File) Inner(name string) string { return f.id(f.Stem+"-"+Name(name), name) }

// Folder is the id of a session whose files stand in a folder of that name, next to
// the folder's others.
func (f *File) Folder(name string) string {
	folder := File{Path: filepath.Dir(f.Path)}
	return folder.id(Name(name), name)
}

func (f *File) id(text, name string) string {
	sum := sha256.Sum256([]byte(f.Path + "\x00" + name))
	return cmp.Or(strings.Trim(text, "-"), "session") + "-" + hex.EncodeToString(sum[:4])
}

// Name keeps of a text what is pleasant in an id.
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

// Elements splits an array that stands in a record into records of their own.
func Elements(rec *interop.Record, array jsontext.Value) ([]interop.Record, error) {
	values, err := rawjson.Elements(array)
	if err != nil {
		return nil, err
	}
	all := make([]interop.Record, 0, len(values))
	line, at := rec.Line, 0
	for _, v := range values {
		r := interop.Record{
			Source: rec.Source, Line: line, Offset: rec.Offset, Value: v,
			Digest: event.DigestOf(v), Size: int64(len(v)), Repaired: rec.Repaired,
		}
		if start, ok := within(rec.Value, v); ok && !rec.Repaired && start >= at {
			line += int64(bytes.Count(rec.Value[at:start], []byte{'\n'}))
			at = start
			r.Line, r.Offset = line, rec.Offset+int64(start)
		}
		all = append(all, r)
	}
	return all, nil
}

// Time reads a time, which is UTC where it does not say; zero if it is none.
func Time(text string) time.Time {
	if at := interop.Time(text); !at.IsZero() {
		return at
	}
	at, _ := time.Parse("2006-01-02T15:04:05", text) // zero, where it is none
	return at
}

// within is where a value stands in what it was split from, whose bytes it
// shares.
func within(whole, v jsontext.Value) (start int, ok bool) {
	start = cap(whole) - cap(v)
	ok = len(v) > 0 && start >= 0 && start+len(v) <= len(whole) && &whole[start] == &v[0]
	return start, ok
}
