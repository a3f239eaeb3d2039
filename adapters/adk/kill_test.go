package adk_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/adk/v2/session"

	"github.com/convlog/convlog/adapters/adk"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/verify"
)

// The test binary is also the process that is killed: it appends events to the store of this name, and prints a
// line after each acknowledgement.
const writerEnv = "CONVLOG_ADK_WRITER"

func killStore(place string) eventlog.Store {
	if strings.HasSuffix(place, ".db") {
		return sqlite.New(place)
	}
	return jsonl.New(place)
}

func write(place string) {
	ctx := context.Background()
	s := adk.New(eventlog.Open(killStore(place))).Sessions
	got, err := s.Get(ctx, &session.GetRequest{AppName: "shop", UserID: "ann", SessionID: "s1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for n := got.Session.Events().Len() + 1; ; n++ {
		e := sets(fmt.Sprint(n), map[string]any{"k": n, "app:k": n, "user:k": n})
		e.ID = fmt.Sprint("event ", n)
		for range 2 { // a program that retries
			if err := s.AppendEvent(ctx, got.Session, e); err != nil {
				fmt.Println(err)
				return
			}
		}
		fmt.Println(n)
	}
}

// Of a process that is killed at any moment, each acknowledged event is stored once, and the states agree with the events.
func TestKill(t *testing.T) {
	for _, name := range []string{"log", "log.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := filepath.Join(t.TempDir(), name)
			log := openLog(t, func() (eventlog.Store, error) { return killStore(place), nil })
			create(t, adk.New(log).Sessions, map[string]any{"k": 0, "app:k": 0, "user:k": 0})
			log.Close()
			for kill := range testsize.Pick(2, 4, 50) {
				acknowledged := killWriter(t, place, 1+kill%7)
				checkKilled(t, place, acknowledged)
			}
		})
	}
}

// killWriter kills a writer after some acknowledgements, and returns the last event that it acknowledged.
func killWriter(t *testing.T, place string, after int) (last int) {
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
		if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
			t.Errorf("the writer says %q", lines.Text())
		}
		if n == after {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
	return last
}

func checkKilled(t *testing.T, place string, acknowledged int) {
	t.Helper()
	log := openLog(t, func() (eventlog.Store, error) { return killStore(place), nil })
	defer log.Close()
	got := get(t, adk.New(log).Sessions, 0)
	stored := texts(got)
	want := make([]string, len(stored))
	for i := range want {
		want[i] = fmt.Sprint(i + 1)
	}
	if len(stored) < acknowledged || !slices.Equal(stored, want) {
		t.Fatalf("%d events are acknowledged, stored %q", acknowledged, stored)
	}
	for _, key := range []string{"k", "app:k", "user:k"} {
		if v := value(t, got, key); v != float64(len(stored)) {
			t.Errorf("after event %d, %s is %v", len(stored), key, v)
		}
	}
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r, err := verify.Session(t.Context(), log, info.ID); err != nil || len(r.Defects) > 0 {
			t.Errorf("session %s: %v, %v", info.ID, r.Defects, err)
		}
	}
}
