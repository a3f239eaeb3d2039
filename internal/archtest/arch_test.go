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

// room is a row of the table: the imports that a package may have besides the
// standard library. A name with the end /... is a folder with all folders in it.
type room struct {
	rooms   []string // packages of this module
	modules []string // modules of others
	tests   []string // packages of this module that its tests may import too
}

// given are the modules that every room may use: ids and JSON.
var given = []string{"github.com/oklog/ulid/v2", "github.com/google/uuid", "github.com/go-json-experiment/json"}

// The modules and packages that any test may use.
var (
	testModules = []string{"github.com/google/go-cmp", "pgregory.net/rapid", "github.com/rogpeppe/go-internal"}
	testRooms   = []string{"event", "eventlog/...", "store/...", "replay/...", "internal/testsize"}
)

// unsafeRooms are the packages that may import unsafe. An address says nothing about bytes
// that its owner may change in place.
var unsafeRooms = []string{"interop/internal/document"} // the offset of a value in its record

// table is the policy: arrows point down only. The table may have a row before
// its package does.
var table = map[string]room{
	"event":                  {rooms: []string{"internal/line", "internal/mark", "internal/mint", "internal/rawjson", "internal/sealed"}, modules: given},
	"internal/mint":          {modules: given},
	"internal/mark":          {},
	"internal/sealed":        {rooms: []string{"internal/line"}},
	"internal/searchtext":    {rooms: []string{"event", "internal/rawjson"}, modules: append([]string{"golang.org/x/text"}, given...)},
	"internal/backward":      {rooms: []string{"event"}},
	"internal/line":          {rooms: []string{"internal/rawjson"}, modules: given},
	"internal/testsize":      {modules: testModules},
	"internal/line/linetest": {rooms: []string{"internal/line", "internal/rawjson"}, modules: given},
	"internal/rawjson":       {modules: given},

	"eventlog": {
		rooms: []string{"event", "internal/backward", "internal/line", "internal/mark", "internal/mint", "internal/rawjson", "internal/sealed", "internal/engine", "internal/regular"}, modules: given,
		tests: []string{"upkeep/...", "internal/testkit"},
	},
	"internal/engine":   {rooms: []string{"event"}},
	"internal/relation": {rooms: []string{"event"}, modules: given},
	"prices":            {rooms: []string{"event"}, modules: given},
	"search": {
		rooms: []string{"event", "eventlog", "internal/engine", "internal/line", "internal/rawjson", "internal/searchtext"}, modules: given,
		tests: []string{"internal/suite"},
	},
	"secrets": {
		rooms: []string{"event", "eventlog", "internal/mark"}, modules: given,
		tests: []string{"search", "projection", "fork", "upkeep/..."},
	},
	"upkeep/verify": {
		rooms: []string{"event", "eventlog", "projection", "internal/backward", "internal/engine", "internal/line", "internal/mark", "internal/regular", "internal/sealed", "internal/storenotes", "upkeep/internal/keptsum"}, modules: append([]string{"golang.org/x/mod"}, given...),
		tests: []string{"upkeep/...", "fork", "internal/suite", "internal/testkit", "internal/line/linetest"},
	},
	"upkeep/erase": {
		rooms: []string{"event", "eventlog", "internal/engine", "internal/line", "internal/mark", "internal/searchtext", "internal/storenotes", "search", "upkeep/internal/keptsum"}, modules: given,
		tests: []string{"fork", "upkeep/...", "internal/suite", "internal/testkit"},
	},
	"upkeep/internal/adopt": {
		rooms: []string{"event", "eventlog", "internal/engine", "internal/line", "internal/sealed", "upkeep/internal/keptsum"}, modules: given,
	},
	"upkeep/internal/keptsum": {rooms: []string{"event", "internal/line"}, modules: given},
	"upkeep/transfer": {
		rooms: []string{"event", "eventlog", "internal/engine", "internal/line", "internal/folder", "internal/rawjson", "internal/sessiontree", "internal/storenotes", "projection", "runlog", "upkeep/erase", "upkeep/internal/adopt", "upkeep/internal/keptsum"}, modules: given,
		tests: []string{"secrets", "upkeep/...", "fork", "runlog/stats", "internal/testkit", "internal/garden", "internal/line/linetest"},
	},
	"upkeep/repair": {
		rooms: []string{"event", "eventlog", "internal/engine", "internal/line", "internal/rawjson", "upkeep/verify", "upkeep/erase", "upkeep/internal/adopt", "upkeep/transfer"}, modules: given,
		tests: []string{"fork", "internal/testkit"},
	},
	"upkeep/retire": {
		rooms: []string{"event", "eventlog", "fork", "internal/folder", "internal/storenotes", "upkeep/erase", "upkeep/transfer", "upkeep/verify"}, modules: given,
		tests: []string{"internal/suite"},
	},

	"replay":                   {rooms: []string{"event", "eventlog", "internal/backward"}, modules: given, tests: []string{"upkeep/...", "internal/testkit"}},
	"replay/replaytest":        {rooms: []string{"event", "eventlog", "replay", "store/memory", "upkeep/transfer"}, modules: given, tests: []string{"upkeep/..."}},
	"projection":               {rooms: []string{"event", "eventlog", "internal/backward", "internal/engine", "internal/rawjson", "internal/sealed"}, modules: given, tests: []string{"fork", "runlog/stats", "upkeep/...", "internal/garden"}},
	"runlog":                   {rooms: []string{"event", "eventlog", "projection", "runlog/internal/estimate", "runlog/internal/turns", "internal/rawjson"}, modules: given, tests: []string{"fork", "runlog/stats", "upkeep/...", "internal/garden"}},
	"runlog/internal/estimate": {rooms: []string{"event", "projection", "internal/mark"}, modules: given},
	"runlog/internal/turns":    {rooms: []string{"event", "internal/mark"}, modules: given},
	"runlog/stats": {
		rooms: []string{"event", "eventlog", "prices", "projection", "runlog/internal/estimate", "runlog/internal/turns", "internal/sessiontree", "internal/sealed"}, modules: given,
		tests: []string{"fork", "runlog", "upkeep/...", "internal/garden"},
	},
	"runlog/sink": {
		rooms: []string{"event", "eventlog", "projection", "runlog", "internal/flock", "internal/folder", "internal/regular"}, modules: given,
		tests: []string{"internal/regular/special", "fork", "runlog/stats", "upkeep/...", "internal/garden"},
	},
	"internal/sessiontree": {rooms: []string{"event", "eventlog", "projection"}},
	"fork":                 {rooms: []string{"event", "eventlog", "upkeep/erase", "internal/engine", "internal/mark", "internal/rawjson"}, modules: given, tests: []string{"projection", "upkeep/..."}},
	"flow": {
		rooms:   []string{"event", "eventlog", "projection", "fork", "runlog/sink", "flow/internal/playback", "flow/internal/raw", "internal/engine", "internal/modelapi", "internal/rawjson", "internal/searchtext"},
		modules: append([]string{"go.opentelemetry.io/otel", "github.com/google/jsonschema-go"}, given...),
		tests:   []string{"runlog/...", "upkeep/...", "flow/flowtest", "flow/capture"},
	},
	"flow/capture": {rooms: []string{"flow/internal/raw"}, modules: given},
	"flow/flowhttp": {
		rooms: []string{"event", "eventlog", "flow", "projection", "internal/httpapi"}, modules: given,
		tests: []string{"fork", "internal/httpapi/apitest", "internal/testsize", "store/jsonl", "upkeep/erase"},
	},
	"flow/mcptools": { // a module of its own
		rooms: []string{"event", "flow"}, modules: append([]string{"github.com/modelcontextprotocol/go-sdk"}, given...),
		tests: []string{"flow/flowtest", "internal/testsize"},
	},
	"adapters/genkit": { // a module of its own
		rooms: []string{"event", "eventlog", "projection"}, modules: append([]string{"github.com/firebase/genkit/go"}, given...),
		tests: []string{"fork", "internal/adaptertest", "internal/testkit", "upkeep/..."},
	},
	"adapters/adk": { // a module of its own
		rooms: []string{"event", "eventlog", "projection", "search", "upkeep/erase"}, modules: append([]string{"google.golang.org/adk/v2", "google.golang.org/genai", "gorm.io"}, given...), // gorm.io in tests
		tests: []string{"fork", "internal/adaptertest", "upkeep/..."},
	},
	"internal/adaptertest":     {rooms: []string{"eventlog", "internal/natstest", "internal/pgtest", "internal/testkit", "internal/testsize", "store/...", "upkeep/verify"}},
	"internal/httpapi/apitest": {modules: []string{"github.com/google/jsonschema-go"}},
	"internal/httpapi":         {rooms: []string{"event"}, modules: given},
	"flow/internal/raw":        {},
	"flow/internal/playback":   {rooms: []string{"event", "projection"}, modules: given},
	"flow/flowtest": {
		rooms:   []string{"event", "eventlog", "projection", "fork", "flow", "flow/internal/playback", "replay", "replay/replaytest", "store/memory", "upkeep/transfer"},
		modules: given,
		tests:   []string{"upkeep/erase"},
	},
	"flow/internal/httpmodel": {rooms: []string{"event", "eventlog", "flow", "projection", "internal/rawjson"}, modules: given},
	"flow/internal/httpmodel/modeltest": {
		rooms: []string{"event", "eventlog", "flow", "projection", "internal/rawjson", "internal/testsize"}, modules: append(testModules, given...),
	},
	"flow/openai": {
		rooms: []string{"event", "eventlog", "flow", "flow/internal/httpmodel", "projection", "internal/modelapi", "internal/rawjson", "interop/openai"}, modules: given,
		tests: []string{"flow/internal/..."},
	},
	"flow/anthropic": {
		rooms: []string{"event", "eventlog", "flow", "flow/internal/httpmodel", "projection", "internal/modelapi", "internal/rawjson", "interop/anthropic"}, modules: given,
		tests: []string{"flow/internal/..."},
	},

	"internal/lease":  {rooms: []string{"eventlog", "internal/flock", "internal/regular"}, modules: []string{"golang.org/x/sys"}},
	"internal/pages":  {rooms: []string{"event"}},
	"internal/notify": {rooms: []string{"eventlog"}, modules: []string{"golang.org/x/sys"}},
	"store/memory":    {rooms: []string{"event", "eventlog", "internal/lease", "internal/notify", "internal/relation"}, modules: given},
	"store/storetest": {rooms: []string{"event", "eventlog", "internal/suite", "internal/testsize", "upkeep/..."}, modules: append(testModules, given...)},
	"eventlog/logtest": {
		rooms: []string{"event", "eventlog", "fork", "search", "store/memory", "store/storetest", "upkeep/...", "internal/engine", "internal/mint", "internal/searchtext", "internal/suite", "internal/testsize", "internal/witness"}, modules: append(testModules, given...),
	},
	"internal/witness": {rooms: []string{"event", "eventlog", "internal/mint", "internal/suite", "store/memory", "upkeep/..."}, modules: append(testModules, given...)},
	"internal/suite":   {rooms: []string{"event", "eventlog", "internal/testsize", "store/memory", "upkeep/verify"}, modules: append(testModules, given...)},
	"internal/needle":  {rooms: []string{"internal/line"}},
	"store/jsonl": {
		rooms:   []string{"event", "eventlog", "internal/engine", "internal/flock", "internal/folder", "internal/importrun", "internal/lease", "internal/line", "internal/needle", "internal/notify", "internal/regular", "internal/sysfile"},
		modules: append([]string{"golang.org/x/sys"}, given...),
		tests:   []string{"internal/witness", "internal/crashfs", "internal/regular/special", "upkeep/...", "search"},
	},
	"store/sqlite": {
		rooms:   []string{"event", "eventlog", "internal/engine", "internal/flock", "internal/folder", "internal/importrun", "internal/lease", "internal/needle", "internal/notify", "internal/pages", "internal/regular", "internal/relation", "internal/searchtext", "internal/sysfile"},
		modules: append([]string{"golang.org/x/sys", "modernc.org/sqlite"}, given...),
		tests:   []string{"fork", "internal/witness", "internal/regular/special", "projection", "upkeep/...", "search"},
	},
	"store/postgres": {
		rooms:   []string{"event", "eventlog", "internal/engine", "internal/notify", "internal/pages", "internal/relation"},
		modules: append([]string{"github.com/jackc/pgx/v5"}, given...),
		tests:   []string{"internal/pgtest", "internal/suite", "internal/tcpproxy", "internal/witness", "projection", "upkeep/..."},
	},
	"store/jetstream": {
		rooms:   []string{"event", "eventlog", "internal/engine", "internal/notify", "internal/relation"},
		modules: append([]string{"github.com/nats-io/nats.go"}, given...),
		tests:   []string{"internal/natstest", "internal/suite", "internal/tcpproxy", "upkeep/..."},
	},
	"internal/pgtest":              {rooms: []string{"internal/tcpproxy"}, modules: []string{"github.com/jackc/pgx/v5"}},
	"internal/natstest":            {rooms: []string{"internal/tcpproxy"}, modules: []string{"github.com/nats-io/nats.go"}},
	"internal/bench/dbos":          {rooms: []string{"eventlog", "flow", "internal/pgtest", "store/postgres"}, modules: []string{"github.com/dbos-inc/dbos-transact-golang"}}, // a module of its own
	"internal/browser":             {modules: []string{"github.com/chromedp/cdproto", "github.com/chromedp/chromedp"}},                                                        // a module of its own
	"internal/natstest/natsserver": {modules: []string{"github.com/nats-io/nats-server/v2"}},                                                                                  // a module of its own
	"internal/tcpproxy":            {},

	"interop":     {rooms: []string{"event", "eventlog", "internal/importrun", "internal/storenotes", "internal/sysfile", "internal/written", "projection"}, modules: given, tests: []string{"interop/...", "upkeep/..."}},
	"interop/...": {rooms: []string{"event", "eventlog", "fork", "projection", "internal/files", "internal/importrun", "internal/mark", "internal/modelapi", "internal/rawjson", "internal/titles", "internal/transcript", "internal/written", "interop/...", "prices"}, modules: given, tests: []string{"internal/searchtext", "runlog/...", "search", "upkeep/...", "secrets"}},

	"interop/html": {
		rooms: []string{"event", "eventlog", "internal/htmlpage", "internal/transcript", "interop", "prices"}, modules: given,
		tests: []string{"internal/htmlpage/htmltest", "interop/internal/importtest"},
	},
	"interop/opencode": {
		rooms: []string{"event", "eventlog", "interop", "interop/internal/...", "internal/files", "internal/rawjson"}, modules: append([]string{"modernc.org/sqlite"}, given...),
		tests: []string{"interop/...", "projection", "runlog/..."},
	},

	"interop/internal/sessions": {
		rooms: []string{"event", "eventlog", "fork", "internal/engine", "internal/importrun", "internal/rawjson", "internal/storenotes", "internal/written", "interop/internal/records"}, modules: given, tests: []string{"upkeep/..."},
	},
	"interop/internal/importtest": {
		rooms: []string{"event", "eventlog", "interop", "internal/testsize", "projection", "store/memory", "upkeep/erase", "upkeep/verify"}, modules: append(testModules, given...),
	},

	"cmd/logtool":                 {rooms: []string{"..."}, modules: append([]string{"github.com/modelcontextprotocol/go-sdk", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/mod", "golang.org/x/sys"}, given...)},
	"cmd/logtool/internal/mcplog": {rooms: []string{"internal/httpapi", "secrets"}, modules: append([]string{"github.com/modelcontextprotocol/go-sdk"}, given...)},
	"cmd/logtool/internal/pick":   {rooms: []string{"cmd/logtool/internal/term", "internal/terminal"}, modules: []string{"charm.land/bubbletea/v2"}},
	"cmd/logtool/internal/term":   {rooms: []string{"internal/terminal"}, modules: append([]string{"golang.org/x/sys"}, given...)},

	"examples":     {tests: []string{"..."}},
	"examples/...": {rooms: []string{"..."}, modules: given},

	"internal/terminal":   {},
	"internal/importrun":  {},
	"internal/written":    {rooms: []string{"event"}, modules: given},
	"internal/storenotes": {rooms: []string{"event", "eventlog", "internal/engine"}, modules: given},
	"internal/titles":     {},
	"web": {
		rooms:   []string{"event", "eventlog", "flow", "fork", "internal/answers", "internal/attempts", "internal/files", "internal/htmlpage", "internal/httpapi", "internal/listing", "internal/rawjson", "internal/step", "internal/transcript", "interop/formats", "prices", "projection", "runlog", "runlog/stats", "search", "upkeep/verify"},
		modules: append([]string{"golang.org/x/sync"}, given...), tests: []string{"flow/flowtest", "internal/htmlpage/htmltest", "internal/httpapi/apitest", "store/..."},
	},
	"internal/attempts": {rooms: []string{"event", "eventlog", "internal/files", "internal/rawjson", "interop/formats", "runlog/stats"}, modules: given},
	"internal/answers": {
		rooms: []string{"event", "eventlog", "flow", "fork", "internal/httpapi", "internal/listing", "projection", "runlog/stats", "search", "upkeep/verify"}, modules: given,
	},
	"internal/htmlpage": {
		rooms:   []string{"event", "eventlog", "internal/files", "internal/linediff", "internal/listing", "internal/transcript", "projection"},
		modules: append([]string{"github.com/alecthomas/chroma/v2", "github.com/yuin/goldmark"}, given...),
	},
	"internal/htmlpage/htmltest": {},
	"internal/listing": {
		rooms: []string{"event", "eventlog", "fork", "internal/transcript", "projection", "runlog/stats"}, modules: given, tests: []string{"internal/testkit", "upkeep/..."},
	},
	"internal/linediff": {},
	"internal/step":     {rooms: []string{"event", "eventlog", "internal/transcript", "projection"}, modules: given},
	"internal/files":    {rooms: []string{"event", "eventlog", "internal/linediff", "internal/rawjson"}, modules: given},
	"internal/modelapi": {rooms: []string{"internal/rawjson"}, modules: given},
	"internal/transcript": {
		rooms: []string{"event", "eventlog", "prices", "projection", "runlog/stats", "internal/rawjson", "internal/titles"}, modules: given, tests: []string{"fork", "internal/testkit"},
	},
	"internal/folder":   {tests: []string{"event"}},
	"internal/regular":  {modules: []string{"golang.org/x/sys"}},
	"internal/flock":    {rooms: []string{"internal/regular"}, modules: []string{"golang.org/x/sys"}},
	"internal/sysfile":  {modules: []string{"golang.org/x/sys"}},
	"internal/crashfs":  {rooms: []string{"store/jsonl"}},
	"internal/bench":    {rooms: []string{"..."}, modules: append([]string{"github.com/jackc/pgx/v5", "github.com/nats-io/nats.go", "golang.org/x/sys", "modernc.org/sqlite"}, given...)},
	"internal/archtest": {},
	"internal/garden": {
		rooms: []string{"event", "eventlog", "projection", "fork", "internal/suite", "internal/testsize", "store/...", "upkeep/..."}, modules: append(testModules, given...),
	},
	"internal/testkit":          {rooms: []string{"event", "eventlog", "store/jsonl", "store/memory", "store/sqlite"}},
	"internal/regular/special":  {modules: []string{"golang.org/x/sys"}},
	"internal/torture":          {tests: []string{"flow", "fork", "internal/crashfs", "internal/flock", "internal/natstest", "internal/pgtest", "internal/suite", "internal/tcpproxy", "projection", "runlog/...", "upkeep/..."}},
	"internal/torture/diskfull": {rooms: []string{"event", "eventlog", "internal/sysfile", "store/jsonl", "store/sqlite", "upkeep/erase", "upkeep/verify"}, modules: given},
}

func TestEveryImportIsAnArrowOfTheTable(t *testing.T) {
	packages := 0
	eachPackage(t, moduleRoot(t), func(p pkg) {
		packages++
		for _, complaint := range check(p.dir, p.Package) {
			t.Error(complaint)
		}
	})
	if packages < 3 {
		t.Fatalf("found %d packages: the walk looks in the wrong place", packages)
	}
}

// Programs outside of this repository can do all that an adapter does.
func TestAdaptersImportPublicPackagesOnly(t *testing.T) {
	adapters := 0
	eachPackage(t, moduleRoot(t), func(p pkg) {
		if !strings.HasPrefix(p.dir, "adapters/") {
			return
		}
		adapters++
		for _, imported := range p.Imports {
			if inside, ok := strings.CutPrefix(imported, module+"/"); ok && slices.Contains(strings.Split(inside, "/"), "internal") {
				t.Errorf("%s imports %s", p.dir, inside)
			}
		}
	})
	if adapters == 0 {
		t.Fatal("found no adapter")
	}
}

// pkg is a package of the module, dir its folder below the root.
type pkg struct {
	build.Package
	dir string
}

// eachPackage calls fn for each package of the module.
func eachPackage(t *testing.T, root string, fn func(pkg)) {
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != root && (name == "testdata" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		found, ok := load(t, dir)
		if !ok {
			return nil
		}
		rel, err := filepath.Rel(root, dir)
		if err == nil {
			fn(pkg{found, filepath.ToSlash(rel)})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAWrongArrowIsSeen(t *testing.T) {
	for _, c := range []struct {
		dir  string
		pkg  build.Package
		want string
	}{
		{"eventlog", build.Package{Imports: []string{module + "/store/jsonl"}}, "eventlog imports store/jsonl"},
		{"eventlog", build.Package{Imports: []string{"golang.org/x/sys/unix"}}, "eventlog imports golang.org/x/sys/unix"},
		{"event", build.Package{Imports: []string{"unsafe"}}, "event imports unsafe"},
		{"interop/internal/document", build.Package{Imports: []string{"unsafe"}}, ""},
		{"store/jsonl", build.Package{Imports: []string{module + "/store/sqlite"}}, "store/jsonl imports store/sqlite"},
		{"replay", build.Package{TestImports: []string{module + "/flow"}}, "replay imports flow in its tests"},
		{"interop/claude", build.Package{Imports: []string{module + "/cmd/logtool"}}, "interop/claude imports cmd/logtool"},
		{"attic", build.Package{}, "attic has no row in the table"},
		{"eventlog", build.Package{Imports: []string{"io", given[0]}}, ""},
		{"eventlog", build.Package{XTestImports: []string{module + "/store/jsonl", testModules[0] + "/cmp"}}, ""},
		{"interop/claude", build.Package{Imports: []string{module + "/interop"}}, ""},
	} {
		if got := strings.Join(check(c.dir, c.pkg), "; "); got != c.want {
			t.Errorf("check(%s, %v%v%v) = %q, want %q", c.dir, c.pkg.Imports, c.pkg.TestImports, c.pkg.XTestImports, got, c.want)
		}
	}
}

// moduleRoot is the nearest folder above the test that has a go.mod.
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

// load reads the imports of every Go file in dir, with any build tags. It
// uses go/build and not the go command, so that the test cache knows which
// files the outcome depends on.
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

// check lists the imports of a package that its row does not allow.
func check(dir string, pkg build.Package) []string {
	row, ok := rowOf(dir)
	if !ok {
		return []string{dir + " has no row in the table"}
	}
	var complaints []string
	for _, p := range pkg.Imports {
		if !row.allows(p) || p == "unsafe" && !slices.Contains(unsafeRooms, dir) {
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

// rowOf is a package's own row, or the one of the nearest folder/... above it.
func rowOf(dir string) (room, bool) {
	if row, ok := table[dir]; ok {
		return row, true
	}
	for up := path.Dir(dir); up != "."; up = path.Dir(up) {
		if row, ok := table[up+"/..."]; ok {
			return row, true
		}
	}
	return room{}, false
}

func (r room) allows(imported string) bool {
	if inside, ok := strings.CutPrefix(imported, module+"/"); ok {
		return slices.ContainsFunc(r.rooms, func(pattern string) bool { return within(inside, pattern) })
	}
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") || ofModule(imported, r.modules)
}

func (r room) allowsInTests(imported string) bool {
	inside, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		return ofModule(imported, testModules) || ofModule(imported, given)
	}
	return slices.ContainsFunc(append(slices.Clone(testRooms), r.tests...), func(pattern string) bool { return within(inside, pattern) })
}

// within reports whether dir matches a pattern, for example "fork", "store/..." or "...".
func within(dir, pattern string) bool {
	folder, tree := strings.CutSuffix(pattern, "...")
	folder = strings.TrimSuffix(folder, "/")
	return dir == folder || tree && (folder == "" || strings.HasPrefix(dir, folder+"/"))
}

func ofModule(imported string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") })
}

func short(imported string) string { return strings.TrimPrefix(imported, module+"/") }
