package interop

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Found is what there is to import, in the order of import.
type Found struct {
	// Skipped are files in folders that are no transcripts, ordered by path.
	Skipped []string
	// Links are symbolic links in folders, ordered by path. They are not followed:
	// name one to import what it leads to.
	Links []string
	// Unread are the files and folders below those named that cannot be opened.
	Unread []Row

	files []found
}

// found is a file to import.
type found struct {
	src    Source
	format Format
	rank   int
	lane   string
}

// Candidate is a file that is to be imported.
type Candidate struct {
	Path   string `json:"file"`
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
}

// Files are the files to import, in order.
func (f *Found) Files() []Candidate {
	files := make([]Candidate, 0, len(f.files))
	for _, file := range f.files {
		files = append(files, Candidate{file.src.Name, file.format.Name(), file.src.Size})
	}
	return files
}

// Bytes is how much there is to import.
func (f *Found) Bytes() (n int64) {
	for i := range f.files {
		n += f.files[i].src.Size
	}
	return n
}

// Find looks for the transcripts that paths name, as Import does, and imports
// nothing.
func Find(ctx context.Context, formats []Format, paths []string, opts Options) (*Found, error) {
	f := finder{formats: formats, forced: opts.Forced, seen: map[string]bool{}}
	for _, path := range paths {
		if err := f.path(ctx, filepath.Clean(path), true); err != nil {
			return nil, err
		}
	}
	for _, path := range opts.Matched {
		if err := f.path(ctx, filepath.Clean(path), false); err != nil {
			return nil, err
		}
	}
	for _, src := range opts.Sources {
		if err := f.named(src); err != nil {
			return nil, err
		}
	}
	f.sort()
	return &f.Found, nil
}

// finder collects the files to import.
type finder struct {
	Found
	formats []Format
	forced  bool
	seen    map[string]bool
}

// path takes what a path leads to. What was not named, but matched, may be of no
// known format.
func (f *finder) path(ctx context.Context, path string, named bool) error {
	info, err := os.Stat(path)
	switch {
	case err != nil && !named:
		f.unread(path, err)
		return nil
	case err != nil:
		return fmt.Errorf("import: %w", err)
	case info.IsDir():
		return f.walk(ctx, path)
	case !named:
		f.inFolder(path)
		return nil
	}
	src, err := File(path)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return f.named(src)
}

// walk takes the transcripts in a folder. The separator behind its name leads to
// the folder itself where a link was named.
func (f *finder) walk(ctx context.Context, root string) error {
	return filepath.WalkDir(root+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("import: %w", ctx.Err())
		case err != nil && filepath.Clean(path) == root:
			return fmt.Errorf("import: %w", err)
		case err != nil:
			f.unread(path, err)
			return nil // what can be read of it follows
		case entry.Type()&fs.ModeSymlink != 0:
			f.Links = append(f.Links, path)
		case entry.Type().IsRegular():
			f.inFolder(path)
		}
		return nil
	})
}

// inFolder takes a file if it is of a known format.
func (f *finder) inFolder(path string) {
	if f.seen[path] {
		return
	}
	src, err := File(path)
	var head []byte
	if err == nil {
		head, err = src.head()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return // it has gone meanwhile
	}
	if err != nil {
		f.unread(path, err)
		return
	}
	if format := f.detect(path, head); format != nil {
		if err := f.first(src, format, head); err != nil {
			f.unread(path, err)
		}
		return
	}
	f.seen[path] = true
	f.Skipped = append(f.Skipped, path)
}

// first takes a file, or the one that stands for it.
func (f *finder) first(src Source, format Format, head []byte) error {
	g, ok := format.(Gatherer)
	if !ok {
		f.take(src, format, head)
		return nil
	}
	first := g.Gathered(src.Name, head)
	if first == "" || first == src.Name {
		f.take(src, format, head)
		return nil
	}
	f.seen[src.Name] = true
	if f.seen[first] {
		return nil
	}
	src, err := File(first)
	if err == nil {
		head, err = src.head()
	}
	if err == nil {
		f.take(src, format, head)
	}
	return err
}

// named takes a file that must be of a known format.
func (f *finder) named(src Source) error {
	if f.seen[src.Name] {
		return nil
	}
	head, err := src.head()
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	format := f.detect(src.Name, head)
	if format == nil && f.forced && len(bytes.TrimSpace(head)) > 0 {
		format = f.formats[0]
	}
	if format == nil {
		return &FormatError{Path: src.Name, Reason: unlike(head)}
	}
	if err := f.first(src, format, head); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

func (f *finder) detect(path string, head []byte) Format {
	for _, format := range f.formats {
		if format.Detect(path, head) {
			return format
		}
	}
	return nil
}

func (f *finder) take(src Source, format Format, head []byte) {
	rank := 0
	if r, ok := format.(Ranker); ok {
		rank = r.Rank(src.Name, head)
	}
	lane := ""
	if l, ok := format.(Laner); ok {
		lane = l.Lane(head)
	}
	f.seen[src.Name] = true
	f.files = append(f.files, found{src, format, rank, lane})
}

func (f *finder) unread(path string, err error) {
	f.Unread = append(f.Unread, Row{Path: path, Err: fmt.Errorf("%s: %w", path, plainPath(err))})
}

// plainPath is err without the name of the file, which is named already.
func plainPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func (f *finder) sort() {
	slices.SortStableFunc(f.files, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.src.Name, b.src.Name))
	})
	slices.SortFunc(f.Unread, func(a, b Row) int { return cmp.Compare(a.Path, b.Path) })
	slices.Sort(f.Skipped)
	slices.Sort(f.Links)
}

// IsSQLite is the Reason of a FormatError about a SQLite database, which may be a
// log.
const IsSQLite = "it is a SQLite database"

// unlike says what a file holds that is no transcript, where that helps.
func unlike(head []byte) string {
	switch {
	case len(bytes.TrimSpace(head)) == 0:
		return "it is empty"
	case bytes.HasPrefix(head, []byte("\x1f\x8b")), bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return "it is compressed, unpack it first"
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return IsSQLite
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "its text is UTF-16, write it as UTF-8"
	case bytes.IndexByte(head, 0) >= 0:
		return "it is binary"
	}
	return ""
}
