package archtest

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The names of tests in docs/PROMISES.md: `store/jsonl.TestTails` is a function of a
// package, `TestHoles` after it in the line is one of the same package, and `logtest:
// call/result twice` is a subtest of a suite.
var (
	namedFunction = regexp.MustCompile("`(?:([a-z/]+)\\.)?((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	namedPromise  = regexp.MustCompile("`(storetest|logtest): [a-z]+/([^`]+)`")
	anyTest       = regexp.MustCompile("`[^`]*(?:Test|Fuzz)[A-Z][^` ]*`|`(?:storetest|logtest): [^`]*`")
)

// Every test that docs/PROMISES.md names exists.
func TestPromisesNameTheirTests(t *testing.T) {
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "PROMISES.md"))
	if err != nil {
		t.Fatal(err)
	}
	functions, promises := testsOf(t, root)
	found := 0
	for line := range strings.Lines(string(page)) {
		folder := ""
		for _, m := range namedFunction.FindAllStringSubmatch(line, -1) {
			found++
			folder = cmp.Or(m[1], folder)
			if !functions[folder+"."+m[2]] {
				t.Errorf("package %q has no %s", folder, m[2])
			}
		}
	}
	for _, m := range namedPromise.FindAllStringSubmatch(string(page), -1) {
		found++
		if !promises[m[1]+": "+m[2]] {
			t.Errorf("%s has no promise %q", m[1], m[2])
		}
	}
	if all := len(anyTest.FindAllString(string(page), -1)); all != found || found == 0 {
		t.Errorf("%d tests are named, %d of them in a known form", all, found)
	}
}

// testsOf returns the test functions of the module as package.Function, and the names
// of the subtests of the suites.
func testsOf(t *testing.T, root string) (functions, promises map[string]bool) {
	functions, promises = map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		if suite := path.Base(filepath.ToSlash(dir)); suite == "storetest" || suite == "logtest" {
			nameFields(file, suite+": ", promises)
		}
		dir = filepath.ToSlash(dir)
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				functions[dir+"."+f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return functions, promises
}

// nameFields adds to names the values of all fields called Name, with a prefix.
func nameFields(file *ast.File, prefix string, names map[string]bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, ok := pair.Key.(*ast.Ident)
		value, isText := pair.Value.(*ast.BasicLit)
		if ok && isText && key.Name == "Name" && value.Kind == token.STRING {
			if text, err := strconv.Unquote(value.Value); err == nil {
				names[prefix+text] = true
			}
		}
		return true
	})
}
