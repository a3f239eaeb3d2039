package examples

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// programs is the folder of the programs that tests have built, and builds are their builds.
var (
	programs string
	builds   sync.Map // func() error by the name of the example
)

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "examples-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(programs) // a test may have left a running program
	os.Exit(code)
}

// build builds an example once, and returns its path. The program comes from the build cache,
// which has the programs of go run, and not the ones of go build.
func build(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(programs, name)
	once, _ := builds.LoadOrStore(name, sync.OnceValue(func() error {
		out, err := exec.Command("go", "run", "-exec", "cp", "./"+name, file).CombinedOutput()
		if err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
		return nil
	}))
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return file
}

// output runs a program that must succeed.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", filepath.Base(program), args, err, out, &stderr)
	}
	return string(out)
}

func same(t *testing.T, want, got string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
		t.Error(diff)
	}
}

// The chat loop is killed after each output line, and run again until it finishes.
// Each parcel is looked up, and the session is the one of a run without kills.
func TestChat(t *testing.T) {
	t.Parallel()
	program, dir := build(t, "chat"), filepath.Join(t.TempDir(), "log")
	want := output(t, program, filepath.Join(t.TempDir(), "log"), "s", "Where are my parcels?")
	kills := 0
	for killed(t, program, dir, "s", "Where are my parcels?") {
		if kills++; kills > 20 {
			t.Fatal("the loop makes no progress")
		}
	}
	if kills == 0 {
		t.Error("the program was not killed")
	}
	got := output(t, program, dir, "s", "Where are my parcels?")
	_, want, _ = strings.Cut(want, "user text")
	_, got, _ = strings.Cut(got, "user text")
	same(t, want, got)
	lookups, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "lookups.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"call-0", "call-1", "call-2"} {
		if !strings.Contains(string(lookups), call) {
			t.Errorf("%s was not run", call)
		}
	}
}

// killed runs a program and kills it after its first line that reports an append. It
// is false if the program ended before.
func killed(t *testing.T, program string, args ...string) bool {
	t.Helper()
	cmd := exec.Command(program, args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	appended := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "appended") {
			appended = true
			_ = cmd.Process.Kill()
		}
	}
	err = cmd.Wait()
	if !appended && err != nil {
		t.Fatal(err)
	}
	return appended
}

func TestBranch(t *testing.T) {
	t.Parallel()
	same(t, `common up to event 2, then 2 and 2 events
rewound from event 4 to 2
1 message_added
2 message_added
5 head_moved`, output(t, build(t, "branch"), filepath.Join(t.TempDir(), "log")))
}

func TestInspect(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "log")
	output(t, build(t, "branch"), dir)
	got, _, ok := strings.Cut(output(t, build(t, "inspect"), dir, "retry"), " as ")
	if !ok {
		t.Error("no fork")
	}
	same(t, `0 completed 1 operations 0
1  0 operations 0
forked after event 3`, got)
}

func TestOrders(t *testing.T) {
	t.Parallel()
	same(t, "map[assistant:500 user:500] from 1 of 1001 events", output(t, build(t, "orders"), filepath.Join(t.TempDir(), "s.db")))
}

// Another process appends to the session that the first one watches.
func TestWatch(t *testing.T) {
	t.Parallel()
	watch, add := build(t, "watch"), build(t, "errors")
	dir := filepath.Join(t.TempDir(), "log")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, watch, dir, "s", "3")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		same(t, "stored", output(t, add, dir, "s"))
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("watch: %v\n%s", err, &out)
	}
	same(t, "1 user hello\n2 user hello\n3 user hello", out.String())
}

func TestRequest(t *testing.T) {
	t.Parallel()
	same(t, `{"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"The user's two parcels are in Leipzig and Halle."},{"type":"text","text":"Send both back."}]}]}
{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"The user's two parcels are in Leipzig and Halle."},{"role":"user","content":"Send both back."}]}`,
		output(t, build(t, "request")))
}

func TestOwnEvent(t *testing.T) {
	t.Parallel()
	same(t, "true A0 100 <nil>\ntrue A1 250 <nil>", output(t, build(t, "ownevent")))
}

// Errors tells a person about damage, a bad session id and a missing permission.
func TestErrors(t *testing.T) {
	t.Parallel()
	program, dir := build(t, "errors"), filepath.Join(t.TempDir(), "log")
	for range 2 {
		same(t, "stored", output(t, program, dir, "s"))
	}
	same(t, "choose another session id", output(t, program, dir, "a\nb"))
	file := filepath.Join(dir, "s.jsonl")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(b, []byte("hello"), []byte("hullo"), 1)
	if err := os.WriteFile(file, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := output(t, program, dir, "s"); !strings.HasPrefix(got, "run logtool store repair s: ") {
		t.Errorf("damage: %s", got)
	}
}

// Each program has fewer than 60 lines, the store at most 150.
func TestProgramsAreShort(t *testing.T) {
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) < 9 {
		t.Fatalf("found %d programs, %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		most := 59
		if file == filepath.Join("ownstore", "store.go") {
			most = 150
		}
		if lines := bytes.Count(b, []byte{'\n'}); lines > most {
			t.Errorf("%s has %d lines", file, lines)
		}
	}
}
