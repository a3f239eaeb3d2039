package adaptertest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/verify"
)

// writerEnv is the variable with the store of a process that writes until it is killed.
const writerEnv = "CONVLOG_ADAPTER_WRITER"

// Main runs the tests. In a process that Kill started, it runs write instead, which prints the number of each
// acknowledged write on a line, and returns only with an error.
func Main(m *testing.M, write func(log *eventlog.Log) error) {
	if place := os.Getenv(writerEnv); place != "" {
		store, err := at(place)()
		if err == nil {
			err = write(eventlog.Open(store))
		}
		fmt.Println(err)
		return
	}
	code := m.Run()
	if err := natstest.CloseShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Kill runs check in a folder and in a SQLite file: begin begins the log, then many processes write to it, one after
// another, and each is killed after some acknowledgements. After each kill, check gets the acknowledged numbers of all
// processes, and no session has a defect.
func Kill(t *testing.T, begin func(*eventlog.Log), check func(t *testing.T, log *eventlog.Log, acknowledged []int)) {
	for _, name := range []string{"log", "log.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := filepath.Join(t.TempDir(), name)
			whileOpen(t, place, begin)
			var acknowledged []int
			for kill := range testsize.Pick(2, 4, 50) {
				acknowledged = append(acknowledged, killWriter(t, place, 1+kill%7)...)
				whileOpen(t, place, func(log *eventlog.Log) {
					check(t, log, acknowledged)
					verifyAll(t, log)
				})
			}
		})
	}
}

func whileOpen(t *testing.T, place string, do func(*eventlog.Log)) {
	t.Helper()
	log := Open(t, at(place))
	do(log)
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// killWriter kills a writer after some acknowledgements, and returns the numbers that it acknowledged.
func killWriter(t *testing.T, place string, after int) (acknowledged []int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+place)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		var number int
		if _, err := fmt.Sscan(lines.Text(), &number); err != nil {
			t.Errorf("the writer says %q", lines.Text())
		}
		acknowledged = append(acknowledged, number)
		if n == after {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
	return acknowledged
}

func verifyAll(t *testing.T, log *eventlog.Log) {
	t.Helper()
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r, err := verify.Session(t.Context(), log, info.ID); err != nil || len(r.Defects) > 0 {
			t.Errorf("session %s: %v, %v", info.ID, r.Defects, err)
		}
	}
}
