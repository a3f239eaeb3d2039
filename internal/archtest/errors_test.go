package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page of the errors has the tables below this line.
const errorsStart = "<!-- The tables are generated from the comments of the errors: go test ./internal/archtest -update -->\n"

// sections are the tables of docs/guide/errors.md, by package. The last one has all other
// packages.
var sections = []struct {
	title    string
	prefix   string // which the table leaves out
	packages []string
}{
	{"Appending and reading: package eventlog", "eventlog.", []string{"eventlog"}},
	{"Stores on servers", "", []string{"postgres", "jetstream"}},
	{"Events: package event", "event.", []string{"event"}},
	{"Forks and rewinds: package fork", "fork.", []string{"fork"}},
	{"States: package projection", "projection.", []string{"projection"}},
	{"Agents: package flow", "flow.", []string{"flow", "mcptools"}},
	{"Other packages", "", nil},
}

// Every exported error of a package for users has a row in docs/guide/errors.md, with its
// comment.
func TestGuideListsTheErrors(t *testing.T) {
	root := moduleRoot(t)
	errors := exportedErrors(t, root)
	if len(errors) < 50 {
		t.Fatalf("found %d exported errors", len(errors))
	}
	name := filepath.Join(root, "docs", "guide", "errors.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(page), errorsStart)
	if !found {
		t.Fatalf("docs/guide/errors.md has no line %q", errorsStart)
	}
	want := head + errorsStart + tablesOf(t, errors)
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatal("docs/guide/errors.md differs from the comments of the errors: run go test ./internal/archtest -update")
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tablesOf returns the tables of errors, given as package.Name with their comments.
func tablesOf(t *testing.T, errors map[string]string) string {
	var b strings.Builder
	rest := slices.Sorted(maps.Keys(errors))
	for _, section := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n| error | meaning, and remedy |\n|---|---|\n", section.title)
		rest = slices.DeleteFunc(rest, func(name string) bool {
			p, _, _ := strings.Cut(name, ".")
			if section.packages != nil && !slices.Contains(section.packages, p) {
				return false
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", strings.TrimPrefix(name, section.prefix), strings.TrimSuffix(meaning(t, name, errors[name]), "."))
			return true
		})
	}
	return b.String()
}

// meaning returns the comment of an error as one line: its first paragraph without the
// name, and the items of its list.
func meaning(t *testing.T, name, comment string) string {
	_, short, _ := strings.Cut(name, ".")
	first, rest, _ := strings.Cut(comment, "\n\n")
	text, ok := strings.CutPrefix(strings.Join(strings.Fields(first), " "), short)
	if !ok {
		t.Errorf("the comment of %s begins with %q, and not with its name", name, first)
	}
	for _, item := range listItem.FindAllString(rest, -1) {
		text += "<br>" + strings.Join(strings.Fields(strings.TrimSpace(item)[1:]), " ")
	}
	return strings.ReplaceAll(verb.ReplaceAllString(text, ""), "|", `\|`)
}

// verb matches the words between the name of an error and its meaning.
var verb = regexp.MustCompile(`^(?:: | reports that | means that | reports | is | )`)

// listItem matches an item of a list in a comment.
var listItem = regexp.MustCompile(`(?m)^ +- .*(?:\n {4,}.*)*`)

// exportedErrors returns the comments of the Err… variables, the Err… constants and the
// error types of all packages for users, by package.Name.
func exportedErrors(t *testing.T, root string) map[string]string {
	errors, comments := map[string]string{}, map[string]string{}
	eachUserFile(t, root, func(file *ast.File) {
		p := file.Name.Name + "."
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if t := receiver(d); d.Name.Name == "Error" && ast.IsExported(t) {
					errors[p+t] = ""
				}
			case *ast.GenDecl:
				for name, comment := range commentsOf(d) {
					comments[p+name] = comment
					if strings.HasPrefix(name, "Err") && d.Tok != token.TYPE {
						errors[p+name] = ""
					}
				}
			}
		}
	})
	for name := range errors {
		errors[name] = comments[name]
	}
	return errors
}

// commentsOf returns the comments of the types, variables and constants of a declaration.
func commentsOf(d *ast.GenDecl) map[string]string {
	comments := map[string]string{}
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			comments[s.Name.Name] = commentOf(s.Doc, d.Doc)
		case *ast.ValueSpec:
			comments[s.Names[0].Name] = commentOf(s.Doc, d.Doc)
		}
	}
	return comments
}

func commentOf(own, group *ast.CommentGroup) string {
	if own == nil {
		return group.Text()
	}
	return own.Text()
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
