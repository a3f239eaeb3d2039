package testsize

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The smaller forms have their temporary folders in memory. The long form and benchmarks use
// the disk, and so does a process whose TMPDIR is set.
func TestTemporaryFolders(t *testing.T) {
	disk := t.TempDir()
	memory := memoryFolder()
	if memory == "" {
		memory = "/tmp"
	}
	for _, test := range []struct {
		what, want string
		args       []string
		variables  []string
	}{
		{"usual", memory, nil, nil},
		{"short", memory, []string{"-test.short"}, nil},
		{"long", "/tmp", nil, []string{variable + "=1"}},
		{"benchmark", "/tmp", []string{"-test.bench=none"}, nil},
		{"set", disk, nil, []string{"TMPDIR=" + disk}},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-test.run=^TestPrintTemporaryFolder$", "-test.v"}, test.args...)...)
		cmd.Env = append(test.variables, "PATH=") // an empty Env is the one of this process
		out, err := cmd.Output()
		if !strings.Contains(string(out), "folder "+test.want+"\n") {
			t.Errorf("%s: want %s, got %s, %v", test.what, test.want, out, err)
		}
	}
}

func TestPrintTemporaryFolder(*testing.T) { fmt.Println("folder", os.TempDir()) }
