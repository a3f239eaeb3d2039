package genkit_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firebase/genkit/go/ai/exp"

	adapter "github.com/convlog/convlog/adapters/genkit"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/verify"
)

// The test binary is also the process that is killed: it saves snapshots in the store of this name, and prints a line
// after each acknowledgement.
const writerEnv = "CONVLOG_GENKIT_WRITER"

func TestMain(m *testing.M) {
	if place := os.Getenv(writerEnv); place != "" {
		write(place)
		return
	}
	code := m.Run()
	if err := natstest.CloseShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// opener opens the same store each time.
type opener func() (eventlog.Store, error)

// stores makes new stores.
var stores = map[string]func(t testing.TB) opener{
	"jsonl":  func(t testing.TB) opener { return placed(t.TempDir()) },
	"sqlite": func(t testing.TB) opener { return placed(filepath.Join(t.TempDir(), "s.db")) },
	"postgres": func(t testing.TB) opener {
		dsn := pgtest.DSN(t)
		return func() (eventlog.Store, error) { return postgres.New(dsn) }
	},
	"jetstream": func(t testing.TB) opener {
		servers := natstest.Shared(t, false)
		options := jetstream.Options{Prefix: fmt.Sprint("log", logs.Add(1)), Replicas: 1, Synced: true, Connect: servers.Connect}
		return func() (eventlog.Store, error) { return jetstream.New("", options) }
	},
}

var logs atomic.Int64

func placed(place string) opener {
	return func() (eventlog.Store, error) {
		if strings.HasSuffix(place, ".db") {
			return sqlite.New(place), nil
		}
		return jsonl.New(place), nil
	}
}

func eachStore(t *testing.T, test func(t *testing.T, open func(testing.TB) *eventlog.Log)) {
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newLog := store(t)
			test(t, func(t testing.TB) *eventlog.Log { return openLog(t, newLog) })
		})
	}
}

func openLog(t testing.TB, open opener) *eventlog.Log {
	t.Helper()
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	log := eventlog.Open(store)
	t.Cleanup(func() { log.Close() })
	return log
}

func jsonlLog(t testing.TB) *eventlog.Log { return openLog(t, stores["jsonl"](t)) }

// write counts in one snapshot, and in a new one each time.
func write(place string) {
	store, err := placed(place)()
	if err != nil {
		fmt.Println(err)
		return
	}
	s := adapter.New[state](eventlog.Open(store))
	for {
		counted := 0
		next, err := s.SaveSnapshot(context.Background(), "counter", func(existing *snapshot) (*snapshot, error) {
			next := snapshot{SessionID: "s", State: &exp.SessionState[state]{}}
			if existing != nil {
				next = *existing
			}
			counted = next.State.Custom.Counter + 1
			next.State.Custom.Counter = counted
			next.State.Messages = append(next.State.Messages, user(fmt.Sprint(counted)))
			return &next, nil
		})
		if err == nil {
			_, err = s.SaveSnapshot(context.Background(), fmt.Sprint("turn ", counted), func(*snapshot) (*snapshot, error) { return next, nil })
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(counted)
	}
}

// Of a process that is killed at any moment, each acknowledged snapshot is stored, and none is half stored.
func TestKill(t *testing.T) {
	for _, name := range []string{"log", "log.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := filepath.Join(t.TempDir(), name)
			var acknowledged []int
			for kill := range testsize.Pick(2, 4, 50) {
				acknowledged = append(acknowledged, killWriter(t, place, 1+kill%7)...)
				checkKilled(t, place, acknowledged)
			}
		})
	}
}

// killWriter kills a writer after some acknowledgements, and returns the counts that it acknowledged.
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
		count, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Errorf("the writer says %q", lines.Text())
		}
		acknowledged = append(acknowledged, count)
		if n == after {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
	return acknowledged
}

func checkKilled(t *testing.T, place string, acknowledged []int) {
	t.Helper()
	log := openLog(t, placed(place))
	defer log.Close()
	s := adapter.New[state](log)
	got := get(t, s, "counter")
	if got == nil || got.State.Custom.Counter < slices.Max(acknowledged) || len(got.State.Messages) != got.State.Custom.Counter {
		t.Fatalf("%d are acknowledged, stored %+v", acknowledged, got)
	}
	for _, n := range acknowledged {
		if turn := get(t, s, fmt.Sprint("turn ", n)); turn == nil || turn.State.Custom.Counter != n || len(turn.State.Messages) != n {
			t.Errorf("turn %d is %+v", n, turn)
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
