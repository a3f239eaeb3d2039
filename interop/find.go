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

// Found lists the files to import. Find makes it.
type Found struct {
	// Skipped are files in folders that are no transcripts, ordered by path.
	Skipped []string
	// Links are symbolic links in folders, ordered by path. They are not followed;
	// name a link to import its target.
	Links []string
	// Unread are files and folders below the named ones that cannot be opened.
	Unread []Row

	files   []found // in the order of import
	cursors *cursors
}

// found is a file to import.
type found struct {
	src    Source
	format Format
	ids    IDs
	waits  []int   // indexes of the files that are imported before this one
	cycle  string  // see Row.Cycle
	known  *cursor // of a file that need not be read
}

// Candidate is a file to import.
type Candidate struct {
	Path   string `json:"file"`
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
}

// Files are the files to import, in the order of import.
func (f *Found) Files() []Candidate {
	files := make([]Candidate, 0, len(f.files))
	for _, file := range f.files {
		files = append(files, Candidate{file.src.Name, file.format.Name(), file.src.Size})
	}
	return files
}

// Bytes is the size of all files to import.
func (f *Found) Bytes() (n int64) {
	for i := range f.files {
		n += f.files[i].src.Size
	}
	return n
}

// Find finds the transcripts that Import would import, and imports nothing. It
// reads the start of every file, and all of a file whose format needs that to
// declare the file's ids.
func Find(ctx context.Context, formats []Format, paths []string, opts ...Options) (*Found, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if i := slices.Index(formats, nil); i >= 0 {
		return nil, fmt.Errorf("import: format %d of %d is nil", i+1, len(formats))
	}
	o := option(opts)
	f := finder{Found: Found{cursors: loadCursors(ctx, formats, o)}, formats: formats, forced: o.Forced && len(formats) > 0, growing: o.Growing, seen: map[string]bool{}}
	if err := f.all(ctx, paths, o); err != nil {
		return nil, err
	}
	f.sort()
	declare(ctx, f.files)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	f.files = order(f.files)
	return &f.Found, nil
}

// finder collects the files to import.
type finder struct {
	Found
	formats []Format
	forced  bool
	growing bool
	seen    map[string]bool
}

// errNoLine reports a file that has no whole line yet.
var errNoLine = fmt.Errorf("%w: it has no whole line yet", fs.ErrNotExist)

// file makes a source of a file.
func (f *finder) file(path string) (Source, error) {
	src, err := File(path)
	if err != nil || !f.growing {
		return src, err
	}
	src, ok, err := wholeLines(src)
	if err == nil && !ok {
		err = errNoLine
	}
	return src, err
}

// all adds the files of paths and options.
func (f *finder) all(ctx context.Context, paths []string, o Options) error {
	for _, path := range paths {
		if err := f.path(ctx, filepath.Clean(path), true); err != nil {
			return err
		}
	}
	for _, path := range o.Matched {
		if err := f.path(ctx, filepath.Clean(path), false); err != nil {
			return err
		}
	}
	for _, src := range o.Sources {
		if err := f.named(src); err != nil {
			return err
		}
	}
	return nil
}

// path adds the file, or the files of the folder, at a path. A path that is matched
// and not named may be missing or of no known format.
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
	src, err := f.file(path)
	if errors.Is(err, errNoLine) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return f.named(src)
}

// walk adds the transcripts in a folder. The separator after its name follows a
// named link to the folder.
func (f *finder) walk(ctx context.Context, root string) error {
	var files []string
	err := filepath.WalkDir(root+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("import: %w", ctx.Err())
		case err != nil && filepath.Clean(path) == root:
			return fmt.Errorf("import: %w", err)
		case err != nil:
			f.unread(path, err)
			return nil // the rest of the folder follows
		case entry.Type()&fs.ModeSymlink != 0:
			f.Links = append(f.Links, path)
		case entry.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.cursors.walked(root, files)
	for _, path := range files {
		if ctx.Err() != nil {
			return fmt.Errorf("import: %w", ctx.Err())
		}
		if !f.seen[path] && !f.known(ctx, path) {
			f.inFolder(path)
		}
	}
	return nil
}

// known adds a file that has not changed since its last import.
func (f *finder) known(ctx context.Context, path string) bool {
	x, ok := f.cursors.unchanged(ctx, path)
	if !ok {
		return false
	}
	if x.Format == "" {
		f.skip(path)
		return true
	}
	i := slices.IndexFunc(f.formats, func(format Format) bool { return format.Name() == x.Format })
	if i < 0 {
		return false
	}
	f.add(fileOf(path, x.Stamp.Size), f.formats[i])
	f.files[len(f.files)-1].known = &x
	return true
}

// skip adds a file that is no transcript.
func (f *finder) skip(path string) {
	f.seen[path] = true
	f.Skipped = append(f.Skipped, path)
}

// inFolder adds a file if it is of a known format.
func (f *finder) inFolder(path string) {
	if f.seen[path] {
		return
	}
	src, err := f.file(path)
	var head []byte
	if err == nil {
		head, err = src.Head()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return // removed since the folder was read
	}
	if err != nil {
		f.unread(path, err)
		return
	}
	if format := f.detect(path, head); format != nil {
		if err := f.gathered(src, format, head); err != nil {
			f.unread(path, err)
		}
		return
	}
	f.skip(path)
	f.cursors.skipped(path)
}

// gathered adds a file, or the file that represents it.
func (f *finder) gathered(src Source, format Format, head []byte) error {
	g, ok := format.(Gatherer)
	if !ok {
		f.add(src, format)
		return nil
	}
	path := g.Gathered(src.Name, head)
	if path == "" || path == src.Name {
		f.add(src, format)
		return nil
	}
	f.seen[src.Name] = true
	if f.seen[path] {
		return nil
	}
	src, err := f.file(path)
	if err == nil {
		_, err = src.Head()
	}
	if err == nil {
		f.add(src, format)
	}
	return err
}

// named adds a file that must be of a known format.
func (f *finder) named(src Source) error {
	if f.seen[src.Name] {
		return nil
	}
	head, err := src.Head()
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	format := f.detect(src.Name, head)
	if format == nil && f.forced && len(bytes.TrimSpace(head)) > 0 {
		format = f.formats[0]
	}
	if format == nil {
		return &FormatError{Path: src.Name, Reason: unlike(head), Database: bytes.HasPrefix(head, sqliteHead)}
	}
	if err := f.gathered(src, format, head); err != nil {
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

func (f *finder) add(src Source, format Format) {
	f.seen[src.Name] = true
	f.files = append(f.files, found{src: src, format: format})
}

func (f *finder) unread(path string, err error) {
	f.Unread = append(f.Unread, Row{Path: path, Err: fmt.Errorf("%s: %w", path, plainPath(err))})
}

// plainPath is err without the file's name, which the caller's message has.
func plainPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// sort orders everything by path.
func (f *finder) sort() {
	slices.SortStableFunc(f.files, func(a, b found) int { return cmp.Compare(a.src.Name, b.src.Name) })
	slices.SortFunc(f.Unread, func(a, b Row) int { return cmp.Compare(a.Path, b.Path) })
	slices.Sort(f.Skipped)
	slices.Sort(f.Links)
}

// sqliteHead is the start of a SQLite database.
var sqliteHead = []byte("SQLite format 3\x00")

// unlike describes the content of a file that is no transcript; it may be empty.
func unlike(head []byte) string {
	switch {
	case len(bytes.TrimSpace(head)) == 0:
		return "it is empty"
	case bytes.HasPrefix(head, []byte("\x1f\x8b")), bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return "it is compressed, unpack it first"
	case bytes.HasPrefix(head, sqliteHead):
		return "it is a SQLite database"
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "its text is UTF-16, write it as UTF-8"
	case bytes.IndexByte(head, 0) >= 0:
		return "it is binary"
	}
	return ""
}
