//go:build npm

package web_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The program that docs/guide/api.md names compiles with strict types, and runs with node.
func TestTypeScript(t *testing.T) {
	dir := filepath.Join("testdata", "clients")
	source := filepath.Join(dir, "example.mts")
	program, err := os.ReadFile(filepath.Join("..", "examples", "api", "parcel.mts"))
	if err == nil {
		err = os.WriteFile(source, program, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = os.Remove(source), os.Remove(filepath.Join(dir, "example.mjs")) })
	compile := exec.CommandContext(t.Context(), "npx", "--no-install", "tsc", "--strict", "--erasableSyntaxOnly", "--target", "es2022", "--module", "nodenext", "--types", "node", "example.mts")
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	x := newRestarting(t)
	x.follows(x.program("node", filepath.Join(dir, "example.mjs")))
}
