package main

import (
	"fmt"
	"os"

	"github.com/convlog/convlog/interop"
)

// preview says what would be imported.
func (x *importRun) preview(in *inputs, found *interop.Found) error {
	files := found.Files()
	for _, own := range in.own {
		files = append(files, own.candidate())
	}
	if len(files) == 0 {
		return importError(&interop.Table{Skipped: found.Skipped, Links: found.Links}, nil)
	}
	p := x.app.printer()
	if x.app.json {
		for _, file := range files {
			if err := p.value(file); err != nil {
				return err
			}
		}
		return p.flush()
	}
	var cells [][]string
	var bytes int64
	for _, file := range files {
		bytes += file.Bytes
		cells = append(cells, []string{file.Format, size(file.Bytes), clean(file.Path)})
	}
	p.table([]string{"FORMAT", "SIZE", "FILE"}, cells, 1)
	p.printf("%s, %s: nothing was imported\n", count(int64(len(files)), "file"), size(bytes))
	if n := len(found.Skipped); n > 0 {
		p.printf("%s in folders would be skipped\n", count(int64(n), "other file"))
	}
	if n := len(found.Links); n > 0 {
		p.printf("%s in folders would not be followed\n", count(int64(n), "link"))
	}
	if err := p.flush(); err != nil || len(found.Unread) == 0 {
		return err
	}
	first := found.Unread[0].Err
	if n := len(found.Unread) - 1; n > 0 {
		return fmt.Errorf("%w; nor can %s be opened", first, count(int64(n), "other"))
	}
	return first
}

// candidate is the stream as a file to import.
func (f *exportFile) candidate() interop.Candidate {
	c := interop.Candidate{Path: f.name, Format: ownFormat}
	if info, err := os.Stat(f.name); err == nil && f.in == nil {
		c.Bytes = info.Size()
	}
	return c
}
