package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// No package imports another one of the module for constants only.
func TestNoImportForConstants(t *testing.T) {
	root := moduleRoot(t)
	constants := map[string]map[string]bool{} // by package
	eachPackage(t, root, func(p pkg) { constants[p.dir] = constantsOf(t, p) })
	eachPackage(t, root, func(p pkg) {
		for imported, names := range usesOf(t, p) {
			if onlyConstants(names, constants[imported]) {
				t.Errorf("%s imports %s for the constants %s only", p.dir, imported, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
			}
		}
	})
}

func onlyConstants(names, constants map[string]bool) bool {
	for name := range names {
		if !constants[name] {
			return false
		}
	}
	return len(names) > 0
}

func TestConstantsAreFound(t *testing.T) {
	constants := map[string]bool{"A": true, "B": true}
	if !onlyConstants(map[string]bool{"A": true}, constants) || onlyConstants(map[string]bool{"A": true, "F": true}, constants) {
		t.Error("constants are not told from other names")
	}
}

// constantsOf are the constants that a package exports.
func constantsOf(t *testing.T, p pkg) map[string]bool {
	names := map[string]bool{}
	for _, file := range parsed(t, p) {
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					names[name.Name] = true
				}
			}
		}
	}
	return names
}

// usesOf are the names that a package uses of each package of the module.
func usesOf(t *testing.T, p pkg) map[string]map[string]bool {
	uses := map[string]map[string]bool{}
	for _, file := range parsed(t, p) {
		imported := map[string]string{} // by local name
		for _, spec := range file.Imports {
			text, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			inside, ours := strings.CutPrefix(text, module+"/")
			if !ours {
				continue
			}
			local := path.Base(inside)
			if spec.Name != nil {
				local = spec.Name.Name
			}
			imported[local] = inside
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && imported[x.Name] != "" {
				names := uses[imported[x.Name]]
				if names == nil {
					names = map[string]bool{}
					uses[imported[x.Name]] = names
				}
				names[s.Sel.Name] = true
			}
			return true
		})
	}
	return uses
}

// parsed are the files of a package, without its tests.
func parsed(t *testing.T, p pkg) (files []*ast.File) {
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
