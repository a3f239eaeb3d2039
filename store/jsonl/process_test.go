package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/eventlog"
)

// The test binary, run again with these variables, is a process that appends.
const (
	childDir  = "CONVLOG_TEST_DIR"
	childName = "CONVLOG_TEST_NAME"
)

const perWriter = 500

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := appendMany(dir, os.Getenv(childName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// appendMany appends events that name their writer, racing all others.
func appendMany(dir, name string) (err error) {
	log := eventlog.Open(New(dir, Options{Sync: Never}))
	defer func() { err = errors.Join(err, log.Close()) }()
	for i := range perWriter {
		e := note(fmt.Sprintf("%s %d", name, i))
		if _, err := log.Append(context.Background(), "s", eventlog.Any, e); err != nil {
			return err
		}
	}
	return nil
}

// Two processes, and two logs of this one, append to one session: nothing is
// lost, doubled, glued together or out of its writer's order.
func TestProcessesShareASession(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for _, name := range []string{"p1", "p2"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir, childName+"="+name)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		must(t, cmd.Start())
		wg.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s: %v: %s", name, err, out.Bytes())
			}
		})
	}
	for _, name := range []string{"g1", "g2"} {
		wg.Go(func() {
			if err := appendMany(dir, name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
	next, n := map[string]int{}, int64(0)
	for e, err := range open(t, dir).Read(t.Context(), "s", eventlog.Span{}) {
		must(t, err)
		n++
		var writer string
		var i int
		text := strings.TrimSuffix(strings.TrimPrefix(string(e.Data), `{"text":"`), `"}`)
		if _, err := fmt.Sscan(text, &writer, &i); err != nil || i != next[writer] || e.Seq != n {
			t.Fatalf("seq %d holds %s where %d is next (%v)", e.Seq, e.Data, next[writer], err)
		}
		next[writer]++
	}
	if n != 4*perWriter {
		t.Errorf("%d events, want %d", n, 4*perWriter)
	}
}
