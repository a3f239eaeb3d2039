package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// qualified matches package.Name anywhere in a line.
var qualified = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)`)

// Every package.Name in the guide and README.md exists.
func TestGuideNamesWhatExists(t *testing.T) {
	root := moduleRoot(t)
	names := exportedNames(t, root)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "guide", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal("the guide has no pages", err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(b)) {
			n++
			for _, m := range qualified.FindAllStringSubmatch(line, -1) {
				if ours := names[m[1]]; ours != nil {
					if !ours[m[2]] {
						t.Errorf("%s:%d: package %s has no %s", page, n, m[1], m[2])
					}
				}
			}
		}
	}
}

// exportedNames returns the exported functions, types, variables and constants of the
// packages for users, by the name of the package.
func exportedNames(t *testing.T, root string) map[string]map[string]bool {
	names := map[string]map[string]bool{}
	eachUserFile(t, root, func(file *ast.File) {
		p := file.Name.Name
		if names[p] == nil {
			names[p] = map[string]bool{}
		}
		for _, d := range file.Decls {
			for _, name := range declared(d) {
				names[p][name] = ast.IsExported(name)
			}
		}
	})
	return names
}

// declared returns the names that a declaration gives to its package.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names = append(names, id.Name)
				}
			}
		}
	}
	return names
}

// eachUserFile parses each Go file of the packages for users, tests excluded.
func eachUserFile(t *testing.T, root string, fn func(*ast.File)) {
	skipped := []string{"internal", "cmd", "examples", "testdata"}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (slices.Contains(skipped, d.Name()) || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err == nil {
			fn(file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
