package archtest

import (
	"go/build"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/convlog/convlog"

// rule is a row of the table: the imports that a package may have besides the standard
// library. A name that ends in /... means a folder and everything below it.
type rule struct {
	packages []string // packages of this module
	modules  []string // modules of others
	tests    []string // more packages of this module for the tests
}

// commonModules may be imported everywhere: ids and JSON.
var commonModules = []string{"github.com/oklog/ulid/v2", "github.com/google/uuid", "github.com/go-json-experiment/json"}

// All tests may import these modules and packages.
var (
	testModules  = []string{"github.com/google/go-cmp", "pgregory.net/rapid", "github.com/rogpeppe/go-internal"}
	testPackages = []string{"event", "eventlog/...", "store/...", "replay/..."}
)

// table has the allowed imports of each package. A row may exist before its package
// does.
var table = map[string]rule{
	"event":                  {packages: []string{"internal/line", "internal/rawjson"}, modules: commonModules},
	"internal/line":          {packages: []string{"internal/rawjson"}, modules: commonModules},
	"internal/line/linetest": {packages: []string{"internal/line", "internal/rawjson"}, modules: commonModules},
	"internal/rawjson":       {modules: commonModules},

	"eventlog": {
		packages: []string{"event", "internal/line", "internal/rawjson", "internal/engine"}, modules: commonModules,
		tests: []string{"upkeep/...", "internal/testkit"},
	},
	"internal/engine": {packages: []string{"event"}},
	"search": {
		packages: []string{"event", "eventlog", "internal/engine", "internal/rawjson"}, modules: commonModules,
	},
	"upkeep/verify": {
		packages: []string{"event", "eventlog", "projection", "internal/engine", "internal/line"}, modules: commonModules,
		tests: []string{"upkeep/...", "internal/testkit", "internal/line/linetest"},
	},
	"upkeep/erase": {
		packages: []string{"event", "eventlog", "internal/engine", "internal/line"}, modules: commonModules,
		tests: []string{"upkeep/...", "internal/testkit"},
	},
	"upkeep/transfer": {
		packages: []string{"event", "eventlog", "internal/engine", "internal/line", "upkeep/erase"}, modules: commonModules,
		tests: []string{"upkeep/...", "internal/testkit", "internal/line/linetest"},
	},
	"upkeep/repair": {
		packages: []string{"event", "eventlog", "internal/engine", "internal/line", "internal/rawjson", "upkeep/verify", "upkeep/erase", "upkeep/transfer"}, modules: commonModules,
		tests: []string{"internal/testkit"},
	},

	"replay":            {packages: []string{"event", "eventlog"}, modules: commonModules, tests: []string{"upkeep/..."}},
	"replay/replaytest": {packages: []string{"event", "eventlog", "replay", "store/memory", "upkeep/transfer"}, modules: commonModules, tests: []string{"upkeep/..."}},
	"projection":        {packages: []string{"event", "eventlog", "internal/rawjson"}, modules: commonModules, tests: []string{"fork", "runlog", "upkeep/...", "internal/garden"}},
	"runlog":            {packages: []string{"event", "eventlog", "projection", "internal/rawjson"}, modules: commonModules, tests: []string{"fork", "upkeep/...", "internal/garden"}},
	"fork":              {packages: []string{"event", "eventlog", "upkeep/erase", "internal/rawjson"}, modules: commonModules, tests: []string{"projection", "upkeep/..."}},
	"flow": {
		packages: []string{"event", "eventlog", "replay", "projection", "fork"},
		modules:  append([]string{"go.opentelemetry.io/otel"}, commonModules...),
	},

	"store/memory":    {packages: []string{"event", "eventlog"}, modules: commonModules},
	"store/storetest": {packages: []string{"event", "eventlog", "internal/suite", "upkeep/..."}, modules: append(testModules, commonModules...)},
	"eventlog/logtest": {
		packages: []string{"event", "eventlog", "search", "store/memory", "store/storetest", "upkeep/...", "internal/suite"}, modules: append(testModules, commonModules...),
	},
	"internal/suite": {packages: []string{"event", "eventlog", "store/memory", "upkeep/verify"}, modules: append(testModules, commonModules...)},
	"store/jsonl": {
		packages: []string{"event", "eventlog", "internal/flock"},
		modules:  append([]string{"golang.org/x/sys"}, commonModules...),
		tests:    []string{"internal/crashfs", "upkeep/...", "search"},
	},
	"store/sqlite": {
		packages: []string{"event", "eventlog", "internal/flock"},
		modules:  append([]string{"golang.org/x/sys", "modernc.org/sqlite"}, commonModules...),
		tests:    []string{"upkeep/...", "search"},
	},

	"interop":     {packages: []string{"event", "eventlog", "fork", "projection", "internal/rawjson"}, modules: commonModules, tests: []string{"interop/...", "upkeep/..."}},
	"interop/...": {packages: []string{"event", "eventlog", "fork", "projection", "runlog", "internal/rawjson", "interop/..."}, modules: commonModules, tests: []string{"upkeep/..."}},

	"interop/internal/importtest": {
		packages: []string{"event", "eventlog", "interop", "projection", "store/memory", "upkeep/verify"}, modules: append(testModules, commonModules...),
	},

	"cmd/logtool": {packages: []string{"..."}, modules: append([]string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys"}, commonModules...)},

	"internal/flock":    {modules: []string{"golang.org/x/sys"}},
	"internal/crashfs":  {packages: []string{"store/jsonl"}, modules: []string{"golang.org/x/sys"}},
	"internal/bench":    {packages: []string{"..."}, modules: append([]string{"golang.org/x/sys", "modernc.org/sqlite"}, commonModules...)},
	"internal/archtest": {},
	"internal/garden": {
		packages: []string{"event", "eventlog", "projection", "fork", "store/...", "upkeep/..."}, modules: append(testModules, commonModules...),
	},
	"internal/testkit":          {packages: []string{"event", "eventlog", "store/jsonl", "store/sqlite"}},
	"internal/torture":          {tests: []string{"internal/flock", "upkeep/..."}},
	"internal/torture/diskfull": {packages: []string{"event", "eventlog", "store/jsonl", "store/sqlite", "upkeep/verify"}, modules: commonModules},
}

func TestImports(t *testing.T) {
	root := moduleRoot(t)
	packages := 0
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != root && (name == "testdata" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		pkg, ok := load(t, dir)
		if !ok {
			return nil
		}
		packages++
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		for _, complaint := range check(filepath.ToSlash(rel), pkg) {
			t.Error(complaint)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if packages < 3 {
		t.Fatalf("found %d packages below %s: the wrong folder?", packages, root)
	}
}

func TestForbiddenImports(t *testing.T) {
	for _, c := range []struct {
		dir  string
		pkg  build.Package
		want string
	}{
		{"eventlog", build.Package{Imports: []string{module + "/store/jsonl"}}, "eventlog imports store/jsonl"},
		{"eventlog", build.Package{Imports: []string{"golang.org/x/sys/unix"}}, "eventlog imports golang.org/x/sys/unix"},
		{"store/jsonl", build.Package{Imports: []string{module + "/store/sqlite"}}, "store/jsonl imports store/sqlite"},
		{"replay", build.Package{TestImports: []string{module + "/flow"}}, "replay imports flow in its tests"},
		{"interop/claude", build.Package{Imports: []string{module + "/cmd/logtool"}}, "interop/claude imports cmd/logtool"},
		{"attic", build.Package{}, "attic has no row in the table"},
		{"eventlog", build.Package{Imports: []string{"io", commonModules[0]}}, ""},
		{"eventlog", build.Package{XTestImports: []string{module + "/store/jsonl", testModules[0] + "/cmp"}}, ""},
		{"interop/claude", build.Package{Imports: []string{module + "/interop"}}, ""},
	} {
		if got := strings.Join(check(c.dir, c.pkg), "; "); got != c.want {
			t.Errorf("check(%s, %v%v%v) = %q, want %q", c.dir, c.pkg.Imports, c.pkg.TestImports, c.pkg.XTestImports, got, c.want)
		}
	}
}

// moduleRoot returns the nearest parent folder that has a go.mod.
func moduleRoot(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// load reads the imports of all Go files in dir, whatever their build tags. It uses
// go/build instead of the go command, so that the test cache tracks the files.
func load(t *testing.T, dir string) (build.Package, bool) {
	everything := build.Default
	everything.UseAllFiles = true
	pkg, err := everything.ImportDir(dir, 0)
	if _, none := err.(*build.NoGoError); none {
		return build.Package{}, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return *pkg, true
}

// check returns the imports of a package that its row does not allow.
func check(dir string, pkg build.Package) []string {
	row, ok := rowOf(dir)
	if !ok {
		return []string{dir + " has no row in the table"}
	}
	var complaints []string
	for _, p := range pkg.Imports {
		if !row.allows(p) {
			complaints = append(complaints, dir+" imports "+short(p))
		}
	}
	for _, p := range append(slices.Clone(pkg.TestImports), pkg.XTestImports...) {
		if short(p) != dir && !row.allows(p) && !row.allowsInTests(p) {
			complaints = append(complaints, dir+" imports "+short(p)+" in its tests")
		}
	}
	return complaints
}

// rowOf returns the row of a package, or the row of the nearest folder/... above it.
func rowOf(dir string) (rule, bool) {
	if row, ok := table[dir]; ok {
		return row, true
	}
	for up := path.Dir(dir); up != "."; up = path.Dir(up) {
		if row, ok := table[up+"/..."]; ok {
			return row, true
		}
	}
	return rule{}, false
}

func (r rule) allows(imported string) bool {
	if inside, ok := strings.CutPrefix(imported, module+"/"); ok {
		return slices.ContainsFunc(r.packages, func(pattern string) bool { return within(inside, pattern) })
	}
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") || ofModule(imported, r.modules)
}

func (r rule) allowsInTests(imported string) bool {
	inside, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		return ofModule(imported, testModules) || ofModule(imported, commonModules)
	}
	return slices.ContainsFunc(append(slices.Clone(testPackages), r.tests...), func(pattern string) bool { return within(inside, pattern) })
}

// within reports whether dir matches a pattern like "fork", "store/..." or "...".
func within(dir, pattern string) bool {
	folder, tree := strings.CutSuffix(pattern, "...")
	folder = strings.TrimSuffix(folder, "/")
	return dir == folder || tree && (folder == "" || strings.HasPrefix(dir, folder+"/"))
}

func ofModule(imported string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") })
}

func short(imported string) string { return strings.TrimPrefix(imported, module+"/") }
