package interop

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/internal/sysfile"
)

// cursors are what the last import of each file knew of it, as the store keeps it
// (importrun.CursorStore). A file that has not changed since, and whose sessions have not, is not
// read again. The methods of nil cursors do nothing.
//
// A cursor has no text and no digest of a text. It is kept only for a file with nothing to reject,
// to skip or to leave out, and without erased events. So a wrong cursor costs time: everything
// that an import of the file could add is in the log.
//
// A file is read again if its size, modification time, change time or inode has changed. No
// program can set the change time, so that also finds a change that keeps the size and the
// modification time. A digest of the file would find no further change, and people could test
// guesses of an erased text with it. A file that changed less than two seconds before it was
// read gets no cursor. A file that grew is read whole: the importer needs the state at the end
// of the old part.
type cursors struct {
	log    *eventlog.Log
	store  importrun.CursorStore
	rules  string
	stored cursorFile
	found  map[string]foundFile // by path: the files of walked folders
	fresh  map[string]cursor    // of this import, by path
}

// cursorFile has the cursors of a store as JSON.
type cursorFile struct {
	// Salt is the key of the hashes of paths.
	Salt  string            `json:"salt"`
	Files map[string]cursor `json:"files"` // by the hash of the path
}

// cursor is what an import knew of a file.
type cursor struct {
	// Rules identify the program that imported, and its formats.
	Rules  string          `json:"rules"`
	Stamp  stamp           `json:"stamp"`
	Folder string          `json:"folder,omitzero"` // of a file whose import may read its folder
	Format string          `json:"format,omitzero"` // empty for a file that is no transcript
	Count  int             `json:"records,omitzero"`
	In     []cursorSession `json:"sessions,omitzero"`
}

// cursorSession is a session of a file, and its version after the import.
type cursorSession struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
}

// stamp tells whether a file has changed.
type stamp struct {
	Size    int64  `json:"size"`
	Changed int64  `json:"changed"` // sysfile.Info.ChangeTime, in nanoseconds
	Written int64  `json:"written"` // the modification time
	Inode   uint64 `json:"inode"`
}

// foundFile is a file of a walked folder.
type foundFile struct {
	stamp  stamp
	folder *folderState
	at     time.Time // before the stamp was taken
}

// folderState describes the files in a folder and below it.
type folderState struct {
	names  []string // with their stamps
	newest int64    // change of a file
	digest string
}

// maxCursors bounds the cursors of a store. Beyond it, an import keeps only its own.
const maxCursors = 200_000

// settleTime is the age from which a change time tells all later changes: file systems count in
// steps of up to two seconds.
const settleTime = 2 * time.Second

// now is a variable for tests.
var now = time.Now

// loadCursors loads the cursors for an import; nil if the options or the store have none.
func loadCursors(ctx context.Context, formats []Format, o Options) *cursors {
	if o.Log == nil || o.Whole || o.Again || o.EvenErased {
		return nil
	}
	store, ok := eventlog.As[importrun.CursorStore](o.Log.Store())
	if !ok {
		return nil
	}
	c := &cursors{log: o.Log, store: store, rules: rulesOf(formats, o), found: map[string]foundFile{}, fresh: map[string]cursor{}}
	c.stored = c.load(ctx)
	if c.stored.Salt == "" {
		c.stored = cursorFile{Salt: rand.Text()}
	}
	return c
}

// rulesOf identifies the program and the formats.
func rulesOf(formats []Format, o Options) string {
	hash := sha256.New()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
			if m == &info.Main || m.Path == "github.com/convlog/convlog" {
				_, _ = fmt.Fprintln(hash, m.Path, m.Version)
			}
		}
	}
	for _, f := range formats {
		_, _ = fmt.Fprintln(hash, f.Name())
	}
	_, _ = fmt.Fprintln(hash, o.Forced)
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// load reads the cursors of the store. Damaged ones are none.
func (c *cursors) load(ctx context.Context) (f cursorFile) {
	data, err := c.store.ImportCursors(ctx)
	if err != nil || len(data) < sumLen || string(data[:sumLen]) != sumOf(data[sumLen:]) || json.Unmarshal(data[sumLen:], &f) != nil {
		return cursorFile{}
	}
	return f
}

// sumLen is the length of the checksum before the JSON.
const sumLen = 8

func sumOf(body []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)) }

// key is the key of a path in a cursorFile.
func (f *cursorFile) key(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	mac := hmac.New(sha256.New, []byte(f.Salt))
	mac.Write([]byte(path))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// walked takes the stamps of all files below a folder, before they are read.
func (c *cursors) walked(root string, paths []string) {
	if c == nil {
		return
	}
	folders := map[string]*folderState{}
	for _, path := range paths {
		f := foundFile{at: now()}
		info, err := sysfile.Stat(path)
		if err != nil || info.ChangeTime.IsZero() {
			continue
		}
		f.stamp = stamp{info.Size, info.ChangeTime.UnixNano(), info.ModTime.UnixNano(), info.Inode}
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			if folders[dir] == nil {
				folders[dir] = &folderState{}
			}
			f.folder = cmp.Or(f.folder, folders[dir])
			folders[dir].add(strings.TrimPrefix(path, dir), f.stamp)
			if len(dir) <= len(root) {
				break
			}
		}
		c.found[path] = f
	}
	for _, folder := range folders {
		folder.close()
	}
}

func (f *folderState) add(name string, s stamp) {
	f.names = append(f.names, fmt.Sprintln(strings.TrimPrefix(name, string(filepath.Separator)), s))
	f.newest = max(f.newest, s.Changed)
}

// close digests the names.
func (f *folderState) close() {
	slices.Sort(f.names)
	sum := sha256.Sum256([]byte(strings.Join(f.names, "")))
	f.names, f.digest = nil, hex.EncodeToString(sum[:8])
}

// unchanged returns the cursor of a file in a walked folder, if an import of the file would add
// nothing.
func (c *cursors) unchanged(ctx context.Context, path string) (cursor, bool) {
	if c == nil {
		return cursor{}, false
	}
	f, walked := c.found[path]
	stored, known := c.stored.Files[c.stored.key(path)]
	if !walked || !known || stored.Rules != c.rules || stored.Stamp != f.stamp || stored.Folder != "" && stored.Folder != f.folder.digest {
		return cursor{}, false
	}
	for _, s := range stored.In {
		if at, ok := c.version(ctx, s.ID); !ok || at != s.Version {
			return cursor{}, false
		}
	}
	return stored, true
}

// version is the version of a session; ok is false if it is missing or has none.
func (c *cursors) version(ctx context.Context, session string) (at uint64, ok bool) {
	versioner, ok := eventlog.As[eventlog.Versioner](c.log.Store())
	if !ok {
		return 0, false
	}
	at, err := versioner.Version(ctx, session)
	return at, err == nil
}

// skipped notes a file that is no transcript.
func (c *cursors) skipped(path string) {
	if c != nil {
		c.note(path, importrun.OwnFile, cursor{})
	}
}

// imported notes a file that was imported. row is its row.
func (c *cursors) imported(f *found, row *Row) {
	if c == nil {
		return
	}
	scope := importrun.AnyFile
	if scoped, ok := f.format.(importrun.Scoped); ok {
		scope = scoped.Scope()
	}
	complete := row.Err == nil && row.Cycle == "" && len(row.Rejected)+len(row.LeftOut)+row.Skipped+row.Withheld == 0
	if !complete || f.src.Size != c.found[f.src.Name].stamp.Size {
		return
	}
	x := cursor{Format: row.Format, Count: row.Records}
	for _, id := range row.Sessions {
		x.In = append(x.In, cursorSession{ID: id})
	}
	c.note(f.src.Name, scope, x)
}

// note keeps a cursor for save, if a later change of the file would change its stamp.
func (c *cursors) note(path string, scope importrun.Scope, x cursor) {
	f, walked := c.found[path]
	settled := f.at.Add(-settleTime).UnixNano()
	if !walked || scope == importrun.AnyFile || max(f.stamp.Changed, f.stamp.Written) > settled {
		return
	}
	if scope == importrun.OwnFolder {
		if f.folder.newest > settled {
			return
		}
		x.Folder = f.folder.digest
	}
	x.Rules, x.Stamp = c.rules, f.stamp
	c.fresh[path] = x
}

// save stores the cursors of this import. It returns no error: without them, the next import reads
// the files.
func (c *cursors) save(ctx context.Context) {
	if c == nil || len(c.fresh) == 0 {
		return
	}
	_ = c.log.Hold(ctx, func(ctx context.Context) error { // as the comment says
		notes, err := storenotes.Load(ctx, c.log)
		if err != nil {
			return err
		}
		all := c.load(ctx) // another import may have stored some, and an erasure may have erased them
		if all.Salt == "" {
			all.Salt = c.stored.Salt
		}
		if all.Files == nil || len(all.Files)+len(c.fresh) > maxCursors {
			all.Files = map[string]cursor{}
		}
		for path, x := range c.fresh {
			if c.complete(ctx, notes, &x) {
				all.Files[all.key(path)] = x
			}
		}
		body, err := json.Marshal(all, json.Deterministic(true))
		if err != nil {
			return err
		}
		return c.store.PutImportCursors(ctx, append([]byte(sumOf(body)), body...))
	})
}

// complete takes the versions of the sessions of a cursor. It is false if one is missing or has
// erased events.
func (c *cursors) complete(ctx context.Context, notes *storenotes.Notes, x *cursor) bool {
	for i := range x.In {
		at, ok := c.version(ctx, x.In[i].ID)
		if !ok || notes.Erased(x.In[i].ID) {
			return false
		}
		x.In[i].Version = at
	}
	return true
}

// result is the result of an import of the file, which would add nothing.
func (x *cursor) result() Result {
	r := Result{Records: x.Count, Present: x.Count}
	for _, s := range x.In {
		r.Sessions = append(r.Sessions, s.ID)
	}
	return r
}
