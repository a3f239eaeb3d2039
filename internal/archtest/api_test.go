package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostNames bounds the public names of the module: the constants, variables, functions and types
// that a package exports. Methods, fields and the names of adapters, which are modules of their own, are listed and not counted.
const mostNames = 800

// testdata/api.txt lists the public API, so that a change of the API shows in a review. It
// begins with the number of names of each package.
func TestAPI(t *testing.T) {
	root := moduleRoot(t)
	names, total := map[string]int{}, 0
	var lines []string
	eachPackage(t, root, func(p pkg) {
		if p.Name == "main" || within(p.dir, "examples/...") || slices.Contains(strings.Split(p.dir, "/"), "internal") {
			return
		}
		api := apiOf(t, filepath.Join(root, p.dir), p.GoFiles)
		for _, line := range api {
			lines = append(lines, p.dir+": "+line)
			if isName(line) && !within(p.dir, "adapters/...") {
				names[p.dir]++
				total++
			}
		}
	})
	var b strings.Builder
	fmt.Fprintf(&b, "%d names\n", total)
	for _, dir := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "%4d %s\n", names[dir], dir)
	}
	slices.Sort(lines)
	b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	if total > mostNames {
		t.Errorf("the module exports %d names, at most %d are allowed", total, mostNames)
	}
	wantFile(t, filepath.Join(root, "testdata", "api.txt"), b.String())
}

// wantFile compares a generated file, or writes it with -update.
func wantFile(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err == nil && string(got) == want {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: run go test ./internal/archtest -update", filepath.Base(name))
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// isName reports whether a line of the API is a name of the package. Lines of methods and
// fields are indented.
func isName(line string) bool { return !strings.HasPrefix(line, " ") }

// apiOf lists the exported declarations of a package, each in one line: its names, and below
// them, indented, the methods and fields of its types.
func apiOf(t *testing.T, dir string, files []string) (api []string) {
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				api = append(api, functionOf(decl)...)
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					api = append(api, specOf(decl.Tok, spec)...)
				}
			}
		}
	}
	slices.Sort(api)
	return slices.Compact(api) // a file of another system may declare the same
}

func functionOf(d *ast.FuncDecl) []string {
	if !d.Name.IsExported() {
		return nil
	}
	signature := strings.TrimPrefix(source(d.Type), "func")
	if d.Recv == nil {
		return []string{"func " + d.Name.Name + signature}
	}
	of := source(d.Recv.List[0].Type)
	if !ast.IsExported(strings.TrimPrefix(of, "*")) {
		return nil
	}
	return []string{fmt.Sprintf("  func (%s) %s%s", of, d.Name.Name, signature)}
}

func specOf(kind token.Token, spec ast.Spec) (api []string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				api = append(api, kind.String()+" "+name.Name)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			return []string{"type " + s.Name.Name + " " + source(s.Type)}
		}
		api = []string{"type " + s.Name.Name + " struct"}
		for _, field := range fields.Fields.List {
			for _, name := range field.Names {
				if name.IsExported() {
					api = append(api, fmt.Sprintf("  field %s.%s %s", s.Name.Name, name.Name, source(field.Type)))
				}
			}
			if len(field.Names) == 0 {
				api = append(api, fmt.Sprintf("  field %s embeds %s", s.Name.Name, source(field.Type)))
			}
		}
	}
	return api
}

// source prints a node in one line.
func source(node any) string {
	var b strings.Builder
	_ = printer.Fprint(&b, token.NewFileSet(), node) // into memory
	return strings.Join(strings.Fields(b.String()), " ")
}
