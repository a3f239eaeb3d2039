package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/interop"
)

// stdinName is the path that names standard input.
const stdinName = "-"

// inputs are the arguments of an import, sorted.
type inputs struct {
	own     []exportFile      // exports of logtool
	paths   []string          // all other files and folders
	opts    interop.Options   // matches of patterns, and streams
	spooled map[string]string // names of streams in errors
	files   []*os.File        // to close
}

// inputs opens the arguments of an import. Close the result, also after an error.
func (a *app) inputs(args []string, format string) (*inputs, error) {
	in := &inputs{spooled: map[string]string{}}
	in.opts.Forced = format != anyFormat
	for _, arg := range args {
		if err := in.add(a, arg, format); err != nil {
			return in, err
		}
	}
	return in, nil
}

func (in *inputs) add(a *app, arg, format string) error {
	if arg == stdinName {
		return in.stream(stdinName, a.in, format)
	}
	path := a.fromHome(arg)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isPattern(path):
		return in.pattern(path, format)
	case err != nil:
		return cannotImport(path, err)
	case info.IsDir():
		in.paths = append(in.paths, path)
		return nil
	case !info.Mode().IsRegular(): // a pipe, for example <(command)
		f, err := os.Open(path)
		if err != nil {
			return cannotImport(path, err)
		}
		in.files = append(in.files, f)
		return in.stream(path, f, format)
	}
	own, err := isOwn(path, format)
	if err != nil {
		return err
	}
	if own {
		in.own = append(in.own, exportFile{name: path})
	} else {
		in.paths = append(in.paths, path)
	}
	return nil
}

// cannotImport is the error of opening a path, with the path once.
func cannotImport(path string, err error) error {
	if to, linked := os.Readlink(path); linked == nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("import %s: a link to %s, which does not exist", path, to)
	}
	var named *fs.PathError
	if errors.As(err, &named) {
		err = named.Err
	}
	return fmt.Errorf("import %s: %w", path, err)
}

// fromHome replaces the ~ of a quoted path.
func (a *app) fromHome(path string) string {
	rest, ok := strings.CutPrefix(filepath.ToSlash(path), "~/")
	home := a.home()
	if !ok || home == "" {
		return path
	}
	if _, err := os.Lstat(path); err == nil {
		return path
	}
	return filepath.Join(home, rest)
}

// pattern adds the matches of a pattern that the shell did not expand.
func (in *inputs) pattern(pattern, format string) error {
	matches, err := glob(pattern)
	if err != nil {
		return usagef("import: %v", err)
	}
	if len(matches) == 0 {
		return fmt.Errorf("import: nothing matches %s", pattern)
	}
	for _, path := range matches {
		own, err := isOwn(path, format)
		if err == nil && own {
			in.own = append(in.own, exportFile{name: path})
			continue
		}
		in.opts.Matched = append(in.opts.Matched, path) // an import reports err again
	}
	return nil
}

// isOwn reports whether a file is an export of logtool.
func isOwn(path, format string) (bool, error) {
	if format != anyFormat {
		return format == ownFormat, nil
	}
	head, err := beginning(path)
	if err != nil {
		return false, cannotImport(path, err)
	}
	if bytes.HasPrefix(head, []byte(activePathMark)) {
		return false, pathOnly(path)
	}
	return writtenByExport(head), nil
}

// stream adds a stream. A transcript is copied to a file, because formats read their
// files more than once.
func (in *inputs) stream(name string, r io.Reader, format string) error {
	b, packed, err := unpack(r)
	file := exportFile{name: name, in: b}
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	head, err := b.Peek(headBytes)
	switch {
	case len(head) == 0 && errors.Is(err, io.EOF):
		return fmt.Errorf("nothing on %s", file)
	case len(head) == 0:
		return fmt.Errorf("read %s: %w", file, err)
	case format == ownFormat, format == anyFormat && writtenByExport(head):
		in.own = append(in.own, file)
		return nil
	case format == anyFormat && bytes.HasPrefix(head, []byte(activePathMark)):
		return pathOnly(file.String())
	case packed:
		return fmt.Errorf("%s is compressed, and no bundle of logtool: decompress it", file)
	}
	src, err := in.spool(b)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	in.spooled[src.Name] = file.String()
	in.opts.Sources = append(in.opts.Sources, src)
	return nil
}

// spool copies a stream to a file without a name. The name of the source is a hash of
// the content: two streams are two sources.
func (in *inputs) spool(r io.Reader) (interop.Source, error) {
	f, err := os.CreateTemp("", "logtool-")
	if err != nil {
		return interop.Source{}, err
	}
	in.files = append(in.files, f)
	if err := os.Remove(f.Name()); err != nil {
		return interop.Source{}, err
	}
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(f, hash), r)
	return interop.Source{
		Name: "stdin-" + hex.EncodeToString(hash.Sum(nil)[:4]),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(f, 0, size)), nil },
		Size: size,
	}, err
}

// rename replaces the name of a stream in an error by the name that the user gave.
func (in *inputs) rename(err error) error {
	var format *interop.FormatError
	if !errors.As(err, &format) || in.spooled[format.Path] == "" {
		return err
	}
	renamed := *format
	renamed.Path = in.spooled[format.Path]
	return &renamed
}

func (in *inputs) close() {
	for _, f := range in.files {
		_ = f.Close() // read-only, or without a name
	}
}
