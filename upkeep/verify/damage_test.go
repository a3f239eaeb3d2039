package verify_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/internal/testkit"
)

// damages are ways to damage a golden log, each with the session that Verify must
// report.
var damages = []struct {
	name    string
	session string
	do      func(t *testing.T, dir string)
}{
	{"a bit flips in data", "basic", onLines("basic", func(l []string) []string {
		l[2] = strings.Replace(l[2], "support", "suppnrt", 1)
		return l
	})},
	{"a bit flips in the crc", "basic", onLines("basic", func(l []string) []string {
		return replace(l, 0, l[0][:8]+string(l[0][8]^1)+l[0][9:])
	})},
	{"a line is lost", "basic", onLines("basic", func(l []string) []string { return slices.Delete(l, 3, 4) })},
	{"the first line is lost", "basic", onLines("basic", func(l []string) []string { return l[1:] })},
	{"a line of an append is lost", "batch", onLines("batch", func(l []string) []string { return slices.Delete(l, 1, 2) })},
	{"two lines change places", "basic", onLines("basic", func(l []string) []string {
		l[3], l[4] = l[4], l[3]
		return l
	})},
	{"a line stands twice", "basic", onLines("basic", func(l []string) []string { return slices.Insert(l, 3, l[2]) })},
	{"the last line has a wrong crc", "basic", onLines("basic", func(l []string) []string {
		return replace(l, 8, strings.Replace(l[8], "completed", "c0mpleted", 1))
	})},
	{"the last line has a wrong brace", "basic", onLines("basic", func(l []string) []string {
		return replace(l, 8, strings.TrimSuffix(l[8], "}\n")+"|\n")
	})},
	{"the only append has a wrong crc", "basic", onLines("basic", func(l []string) []string {
		return []string{strings.Replace(l[0], "golden", "g0lden", 1)}
	})},
	{"a hole, and appends behind it", "basic", onLines("basic", func(l []string) []string {
		return replace(l, 4, strings.Repeat("\x00", len(l[4])))
	})},
	{"a line is torn in the middle", "basic", onLines("basic", func(l []string) []string { return replace(l, 3, l[3][:100]) })},
	{"an empty line stands in the middle", "basic", onLines("basic", func(l []string) []string { return slices.Insert(l, 4, "\n") })},
	{"data is forged, with a crc that fits", "basic", onLines("basic", forge(6, "19.90", "99.90"))},
	{"metadata is forged", "basic", onLines("basic", forge(0, `"golden"`, `"gilded"`))},
	{"a cost is forged", "basic", onLines("basic", forge(3, `"cost":0.0123`, `"cost":0.0124`))},
	{"a seq is forged", "basic", onLines("basic", forge(8, `"seq":9`, `"seq":10`))},
	{"more is forged", "batch", onLines("batch", forge(1, `"more":2`, `"more":1`))},
	{"the cut is forged away", "cut", onLines("cut", forge(1, `"cut":{"bytes":41`, `"cut":{"bytes":40`))},
	{"two sessions change places", "basic", func(t *testing.T, dir string) {
		basic, batch := testkit.ReadFile(t, filepath.Join(dir, "basic.jsonl")), testkit.ReadFile(t, filepath.Join(dir, "batch.jsonl"))
		testkit.WriteFile(t, filepath.Join(dir, "basic.jsonl"), batch)
		testkit.WriteFile(t, filepath.Join(dir, "batch.jsonl"), basic)
	}},
	{"a blob is lost", "spilled", onBlobs(func(path string) error { return os.Remove(path) })},
	{"a blob is cut short", "spilled", onBlobs(func(path string) error { return os.Truncate(path, 7) })},
	{"a blob is exchanged", "spilled", onBlobs(func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) })},
	{"the redacted event is lost", "redacted", onLines("redacted", func(l []string) []string { return l[:4] })},
	{"the commit of a redacted event is forged", "redacted", onLines("redacted", func(l []string) []string {
		i := strings.Index(l[1], `"commit":"`) + len(`"commit":"`)
		return replace(l, 1, sealed(l[1][:i]+strings.Repeat("0", 64)+l[1][i+64:]))
	})},
	{"a parent is lost", "child", func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, "parent.jsonl")); err != nil {
			t.Fatal(err)
		}
	}},
	{"a parent lost the fork point", "child", onLines("parent", func(l []string) []string { return l[:2] })},
	{"an unknown member is forged", "unknown", onLines("unknown", forge(2, `"priority":7`, `"priority":8`))},
	{"a number is written otherwise", "numbers", onLines("numbers", forge(0, `1E+2`, `1e+2`))},
}

func TestDamageIsSeenByBothVerifiers(t *testing.T) {
	dirs := make([]string, len(damages))
	for i, d := range damages {
		dirs[i] = copyOfGoldens(t)
		d.do(t, dirs[i])
		if cmp.Equal(testkit.FilesOf(t, dirs[i]), testkit.FilesOf(t, goldens)) {
			t.Fatalf("%s: nothing was damaged", d.name)
		}
	}
	verdicts, ok := verifyWithPython(t, dirs...)
	for i, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			if report, ok := verifyAll(t, dirs[i])[d.session]; !ok || len(report.Defects) == 0 {
				t.Errorf("Verify sees no defect in session %q", d.session)
			}
			verdict := verdicts[filepath.Join(dirs[i], d.session+".jsonl")]
			if ok && (verdict == "" || strings.HasSuffix(verdict, " ok") || strings.Contains(verdict, " ok,")) {
				t.Errorf("verify.py sees no defect: %s", verdict)
			}
		})
	}
}

// The torn tail of one unfinished write is no defect.
func TestTornTailsAreNoDefects(t *testing.T) {
	tears := []struct {
		name    string
		session string
		edit    func(lines []string) []string
		events  int64
	}{
		{"part of a line", "basic", func(l []string) []string { return replace(l, 8, l[8][:40]) }, 8},
		{"all but the newline", "basic", func(l []string) []string { return replace(l, 8, strings.TrimSpace(l[8])) }, 8},
		{"an append without its last line", "batch", func(l []string) []string { return l[:6] }, 5},
		{"an empty line at the end", "basic", func(l []string) []string { return append(l, "\n") }, 9},
		{"NUL bytes at the end", "basic", func(l []string) []string { return append(l, strings.Repeat("\x00", 512)) }, 9},
	}
	dirs := make([]string, len(tears))
	for i, tear := range tears {
		dirs[i] = copyOfGoldens(t)
		onLines(tear.session, tear.edit)(t, dirs[i])
	}
	verdicts, ok := verifyWithPython(t, dirs...)
	for i, tear := range tears {
		t.Run(tear.name, func(t *testing.T) {
			report := verifyAll(t, dirs[i])[tear.session]
			if report.Events != tear.events || len(report.Defects) > 0 {
				t.Errorf("Verify sees %d events and %v, want %d and no defect", report.Events, report.Defects, tear.events)
			}
			want := fmt.Sprintf("%d events ok", tear.events)
			if verdict := verdicts[filepath.Join(dirs[i], tear.session+".jsonl")]; ok && !strings.HasPrefix(verdict, want) {
				t.Errorf("verify.py says %q, want %q", verdict, want)
			}
		})
	}
}

// TestVerifiersAgreeOnGoldens compares counts; .ci/run makes sure that Python
// is there.
func TestVerifiersAgreeOnGoldens(t *testing.T) {
	verdicts, ok := verifyWithPython(t, goldens)
	want := map[string]int{}
	for _, report := range verifyAll(t, goldens) {
		want[fmt.Sprintf("%d events ok", report.Events)]++
	}
	got := map[string]int{}
	for _, verdict := range verdicts {
		verdict, _, _ = strings.Cut(verdict, ", torn tail")
		got[verdict]++
	}
	if diff := cmp.Diff(want, got); ok && diff != "" {
		t.Errorf("the verifiers differ (-log +verify.py):\n%s", diff)
	}
}

func copyOfGoldens(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "golden")
	if err := os.CopyFS(dir, os.DirFS(goldens)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// verifyWithPython is the last line that testdata/verify.py says of each file
// of the folders; ok is false where there is no Python.
func verifyWithPython(t *testing.T, dirs ...string) (verdicts map[string]string, ok bool) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, false
	}
	var files []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	out, err := exec.Command(python, append([]string{"../../testdata/verify.py"}, files...)...).Output()
	verdicts, bad := map[string]string{}, false
	for line := range strings.Lines(string(out)) {
		path, verdict, _ := strings.Cut(line, ".jsonl:")
		verdicts[path+".jsonl"] = strings.TrimSpace(verdict)
		bad = bad || strings.HasPrefix(verdict, "line ")
	}
	var exit *exec.ExitError
	if failed := errors.As(err, &exit) && exit.ExitCode() == 1; failed != bad || err != nil && !failed {
		t.Fatalf("verify.py ends with %v after\n%s", err, out)
	}
	if len(verdicts) != len(files) {
		t.Fatalf("verify.py speaks of %q, not of %q", slices.Sorted(maps.Keys(verdicts)), files)
	}
	return verdicts, true
}

// onLines edits the lines of a session's file; each keeps its newline.
func onLines(session string, edit func([]string) []string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, session+".jsonl")
		lines := slices.Collect(strings.Lines(testkit.ReadFile(t, path)))
		testkit.WriteFile(t, path, strings.Join(edit(lines), ""))
	}
}

func onBlobs(do func(path string) error) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		paths, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("found %d blobs: %v", len(paths), err)
		}
		for _, path := range paths {
			if err := do(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func replace(lines []string, i int, line string) []string {
	lines[i] = line
	return lines
}

// forge changes a line and gives it the crc that fits.
func forge(i int, old, fresh string) func([]string) []string {
	return func(lines []string) []string {
		return replace(lines, i, sealed(strings.Replace(lines[i], old, fresh, 1)))
	}
}

// sealed is a line with a new crc.
func sealed(line string) string {
	body := bytes.TrimSuffix([]byte(line[18:]), []byte("\n"))
	return fmt.Sprintf(`{"crc":"%08x",%s`, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)), line[18:])
}
