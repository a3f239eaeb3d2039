package storetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/internal/testsize"
)

// The module of the test has the requirements of this module, so that it needs no network.
const moduleName = "module example.com/elsewhere"

// A store in another module can run the promises of a store and of a log. The smaller forms
// compile them.
func TestOtherModule(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	requirements, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	const own = "module github.com/convlog/convlog\n"
	mod := strings.Replace(string(requirements), own, moduleName+"\n", 1)
	if mod == string(requirements) {
		t.Fatalf("go.mod does not begin with %q", own)
	}
	mod += "\nrequire github.com/convlog/convlog v0.0.0\n\nreplace github.com/convlog/convlog => " + root + "\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(root, "examples", "ownstore")
	for _, from := range []string{filepath.Join(root, "go.sum"), filepath.Join(store, "store.go"), filepath.Join(store, "store_test.go")} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(from)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	compile := []string{"list", "-test", "-export", "."}
	run := []string{"test", "-v", "-run", "^TestStore$|^TestLog$/^append$", "."}
	cmd := exec.Command("go", testsize.Pick(compile, compile, run)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "PWD="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v in another module: %v\n%s", cmd.Args, err, out)
	}
	if testsize.Of() < testsize.Long {
		return
	}
	for _, promise := range []string{"--- PASS: TestStore/store/compares_the_head", "--- PASS: TestLog/append/read_back"} {
		if !strings.Contains(string(out), promise) {
			t.Errorf("the other module does not test %q", promise)
		}
	}
}
