package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// Every page of docs is in the navigation of the site, once, and every page of the navigation
// exists. index.md is README.md, and the navigation replaces GUIDE.md.
func TestTheSiteHasEveryPage(t *testing.T) {
	root := moduleRoot(t)
	config, err := os.ReadFile(filepath.Join(root, "mkdocs.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^ *- [^:\n]+: (\S+\.md)$`).FindAllSubmatch(config, -1) {
		listed = append(listed, string(m[1]))
	}
	pages := []string{"index.md"}
	docs := os.DirFS(filepath.Join(root, "docs"))
	err = fs.WalkDir(docs, ".", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" && name != "GUIDE.md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed)
	slices.Sort(pages)
	if !slices.Equal(listed, pages) {
		t.Errorf("mkdocs.yml has the pages\n%q\nand docs has\n%q", listed, pages)
	}
}
