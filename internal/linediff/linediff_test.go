package linediff_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/internal/linediff"
	_ "github.com/convlog/convlog/internal/testsize"
)

func text(hunks []linediff.Hunk) string {
	var b strings.Builder
	for _, h := range hunks {
		b.WriteString(h.Heading() + "\n" + strings.Join(h.Lines, "\n") + "\n")
	}
	return b.String()
}

func TestHunks(t *testing.T) {
	lines := func(all ...string) string { return strings.Join(all, "\n") + "\n" }
	for _, c := range []struct{ name, old, new, want string }{
		{"equal", "a\nb\n", "a\nb\n", ""},
		{"both empty", "", "", ""},
		{"a new text", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"an emptied text", "a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"a line end", "a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"context", lines("1", "2", "3", "4", "5", "6", "7", "8"), lines("1", "2", "3", "4", "five", "6", "7", "8"),
			"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"two changes apart", lines("a", "1", "2", "3", "4", "5", "6", "7", "b"), lines("A", "1", "2", "3", "4", "5", "6", "7", "B"),
			"@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n"},
		{"equal lines", lines("x", "x", "y", "x"), lines("x", "y", "x", "x"), "@@ -1,4 +1,4 @@\n x\n-x\n y\n+x\n x\n"},
		{"a moved line", lines("a", "b", "c"), lines("b", "c", "a"), "@@ -1,3 +1,3 @@\n-a\n b\n c\n+a\n"},
	} {
		if got := text(linediff.Hunks(c.old, c.new)); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, got, c.want)
		}
	}
}

// Law: the lines of a hunk without plus are at its place in the old text, those without minus
// at its place in the new text, and all between hunks is equal.
func TestHunksRebuildBothTexts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		old, new := drawText(r, "old"), drawText(r, "new")
		got := apply(t, old, linediff.Hunks(old, new))
		if got != new {
			r.Fatalf("%q to %q: the hunks give %q", old, new, got)
		}
	})
}

func drawText(r *rapid.T, label string) string {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "", "}"}), 0, 30).Draw(r, label)
	text := strings.Join(lines, "\n")
	if rapid.Bool().Draw(r, label+" ends") && text != "" {
		text += "\n"
	}
	return text
}

// apply applies hunks to a text, by the rules of unified diffs.
func apply(t *testing.T, old string, hunks []linediff.Hunk) string {
	t.Helper()
	rest := strings.SplitAfter(old, "\n")
	if rest[len(rest)-1] == "" {
		rest = rest[:len(rest)-1]
	}
	at, out := 1, ""
	for _, h := range hunks {
		for at < h.Old {
			out, rest, at = out+rest[0], rest[1:], at+1
		}
		for i, line := range h.Lines {
			end := "\n"
			if i+1 < len(h.Lines) && h.Lines[i+1] == linediff.NoEnd {
				end = ""
			}
			switch line[0] {
			case '+':
				out += line[1:] + end
			case ' ', '-':
				if len(rest) == 0 || rest[0] != line[1:]+end {
					t.Fatalf("line %d of the old text is not %q", at, line[1:]+end)
				}
				if line[0] == ' ' {
					out += rest[0]
				}
				rest, at = rest[1:], at+1
			}
		}
	}
	return out + strings.Join(rest, "")
}

// The program patch, where it is installed, applies the hunks.
func TestPatchAppliesHunks(t *testing.T) {
	patch, err := exec.LookPath("patch")
	if err != nil {
		return // TestHunksRebuildBothTexts applies hunks by itself
	}
	old := strings.Repeat("line\n", 20) + "the end"
	new := "first\n" + strings.Repeat("line\n", 9) + "middle\n" + strings.Repeat("line\n", 9) + "the end\n"
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(patch, "-s", name)
	cmd.Stdin = strings.NewReader("--- file\n+++ file\n" + text(linediff.Hunks(old, new)))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != new {
		t.Errorf("%q, %v; want %q", got, err, new)
	}
}

// Long texts without unique lines are compared in bounded memory.
func TestLongTexts(t *testing.T) {
	old, new := strings.Repeat("a\nb\n", 3000), strings.Repeat("b\nb\na\n", 3000)
	if got := apply(t, old, linediff.Hunks(old, new)); got != new {
		t.Error("the hunks of a long text give another text")
	}
}
