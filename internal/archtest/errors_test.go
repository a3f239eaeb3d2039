package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tableName matches `package.Name` in the first column of a table.
var tableName = regexp.MustCompile("`([a-z]+\\.(?:Err[A-Z]\\w*|[A-Z]\\w*Error|Error|Rule|Hibernated))`")

// Every exported error of a package for users has a row in a table of docs/guide/errors.md,
// and every error in these tables exists.
func TestGuideListsTheErrors(t *testing.T) {
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "guide", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for row := range strings.Lines(string(page)) {
		if cells := strings.Split(row, "|"); strings.HasPrefix(row, "| `") && len(cells) > 3 {
			for _, m := range tableName.FindAllStringSubmatch(cells[1], -1) {
				listed = append(listed, m[1])
			}
		}
	}
	existing := exportedErrors(t, root)
	if len(existing) < 50 {
		t.Fatalf("found %d exported errors", len(existing))
	}
	for _, name := range existing {
		if !slices.Contains(listed, name) {
			t.Errorf("docs/guide/errors.md does not explain %s", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(existing, name) {
			t.Errorf("docs/guide/errors.md explains %s, which does not exist", name)
		}
	}
}

// exportedErrors returns the Err… variables, the Err… constants and the error types of all packages for
// users, as package.Name.
func exportedErrors(t *testing.T, root string) (names []string) {
	eachUserFile(t, root, func(file *ast.File) { names = append(names, errorsOf(file)...) })
	return names
}

func errorsOf(file *ast.File) (names []string) {
	add := func(name string) { names = append(names, file.Name.Name+"."+name) }
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if t := receiver(d); d.Name.Name == "Error" && ast.IsExported(t) {
				add(t)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && (d.Tok == token.VAR || d.Tok == token.CONST) && strings.HasPrefix(v.Names[0].Name, "Err") {
					add(v.Names[0].Name)
				}
			}
		}
	}
	return names
}

// receiver is the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	id, _ := t.(*ast.Ident)
	if id == nil {
		return ""
	}
	return id.Name
}
