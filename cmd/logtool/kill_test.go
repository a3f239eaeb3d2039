package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/verify"
)

var rounds = flag.Int("kill.rounds", testsize.Pick(3, 6, 12), "how many commands TestKilledCommands kills in each store")

// killing is a store with writers and killed commands.
type killing struct {
	t     *testing.T
	dir   string
	store place
	log   *eventlog.Log
	rand  *rand.Rand

	mu    sync.Mutex
	acked map[string]event.Head
}

// gc, backup and redact are killed at any moment while other processes write. No
// acknowledged event and no blob of one is lost, every backup is complete, and a
// redaction that ended has erased its events.
func TestKilledCommands(t *testing.T) {
	t.Parallel()
	rounds := *rounds
	for kind, name := range map[string]string{kindJSONL: "log", kindSQLite: "s.db"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := newKilling(t, kind, name, rounds)
			stop := make(chan struct{})
			var writers sync.WaitGroup
			for i := range 2 {
				writers.Go(func() { k.write(fmt.Sprint("session-", i), stop) })
			}
			for round := range rounds {
				switch round % 3 {
				case 0:
					k.killed("store", "gc", "--grace", "0")
				case 1:
					k.backup(fmt.Sprint("backup", round, filepath.Ext(name)))
				case 2:
					k.killed("redact", "secret", fmt.Sprint(1+round/3))
				}
			}
			close(stop)
			writers.Wait()
			k.check(rounds / 3)
		})
	}
}

func newKilling(t *testing.T, kind, name string, rounds int) *killing {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	k := &killing{t: t, dir: t.TempDir(), rand: rand.New(rand.NewPCG(seed, 0)), acked: map[string]event.Head{}}
	k.store = place{kind: kind, path: filepath.Join(k.dir, name)}
	var err error
	if k.log, err = k.store.open(forWriting); err != nil {
		t.Fatal(err)
	}
	for range 1 + rounds/3 {
		if err := k.append("secret", strings.Repeat(secretWord, 30_000)); err != nil { // so long that it is spilled
			t.Fatal(err)
		}
	}
	return k
}

const secretWord = "hunter2-secret "

func (k *killing) append(session, text string, refs ...event.BlobRef) error {
	e := event.UserMessage(text)
	for _, ref := range refs {
		if err := e.AddBlobs(ref.Blob); err != nil {
			return err
		}
	}
	head, err := k.log.Append(k.t.Context(), session, eventlog.Any(), e)
	if err == nil {
		k.mu.Lock()
		k.acked[session] = head
		k.mu.Unlock()
	}
	return err
}

// write appends spilled events, and events that refer to an older blob. If gc has
// removed the blob, write puts it again.
func (k *killing) write(session string, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		text := fmt.Sprint(session, i)
		err := k.append(session, strings.Repeat(text, 300<<10/len(text)))
		for err == nil {
			var ref event.BlobRef
			if ref, err = k.log.PutBlob(k.t.Context(), strings.NewReader(text)); err != nil {
				break
			}
			if err = k.append(session, "with a body", ref); !errors.Is(err, eventlog.ErrBlobNotFound) {
				break
			}
			err = nil
		}
		if err != nil {
			k.t.Errorf("%s: %v", session, err)
			return
		}
	}
}

// command is a logtool command on the store.
func (k *killing) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	program, err := exec.LookPath("logtool")
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.CommandContext(k.t.Context(), program, append([]string{"--store", k.store.String()}, args...)...)
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// killed runs a command, and kills it if it takes longer than a moment.
func (k *killing) killed(args ...string) {
	cmd, out := k.command(args...)
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	timer := time.AfterFunc(time.Duration(k.rand.IntN(80))*time.Millisecond, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var status *exec.ExitError
	if err := cmd.Wait(); err != nil && (!errors.As(err, &status) || status.Exited()) {
		k.t.Errorf("logtool %v: %v: %s", args, err, out)
	}
}

// run runs a command to its end.
func (k *killing) run(args ...string) {
	k.t.Helper()
	cmd, out := k.command(args...)
	if err := cmd.Run(); err != nil {
		k.t.Errorf("logtool %v: %v: %s", args, err, out)
	}
}

// backup runs a backup that may be killed. If there is a backup, it is complete.
func (k *killing) backup(name string) {
	k.mu.Lock()
	before := k.acked["session-0"]
	k.mu.Unlock()
	to := target{place: place{kind: k.store.kind, path: filepath.Join(k.dir, name)}}
	to.partial = to.path + partialSuffix
	k.killed("store", "backup", to.place.String())
	if _, err := os.Stat(to.path); err == nil {
		verifyStore(k.t, to.place)
		err := to.place.with(forReading, func(l *eventlog.Log) error {
			if before.IsZero() {
				return nil
			}
			e, err := l.Event(k.t.Context(), "session-0", before.Seq)
			if err == nil && e.Hash() != before.Hash {
				err = errors.New("it has another history")
			}
			return err
		})
		if err != nil {
			k.t.Errorf("the backup lacks what was acknowledged before it began: %v", err)
		}
	}
	if err := errors.Join(to.discard(k.t.Context()), os.RemoveAll(to.path)); err != nil {
		k.t.Fatal(err)
	}
}

// check verifies the store after the last killed command.
func (k *killing) check(redacted int) {
	for seq := range redacted {
		k.run("redact", "secret", fmt.Sprint(seq+1))
	}
	if err := k.log.Close(); err != nil {
		k.t.Fatal(err)
	}
	verifyStore(k.t, k.store)
	k.run("redact", "secret", fmt.Sprintf("1-%d", k.acked["secret"].Seq))
	k.run("store", "gc", "--grace", "0")
	verifyStore(k.t, k.store)
	k.wantNoSecret()
	err := filepath.WalkDir(k.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasSuffix(path, ".tmp") || strings.Contains(path, partialSuffix) {
			k.t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	err = k.store.with(forReading, func(l *eventlog.Log) error {
		for session, head := range k.acked {
			if e, err := l.Event(k.t.Context(), session, head.Seq); err != nil || e.Hash() != head.Hash {
				k.t.Errorf("%s: event %d was acknowledged and is lost: %v", session, head.Seq, err)
			}
		}
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// verifyStore fails unless the whole store verifies.
func verifyStore(t *testing.T, at place) {
	t.Helper()
	err := at.with(forReading, func(l *eventlog.Log) error {
		for info, err := range l.Sessions(t.Context()) {
			if err != nil {
				return err
			}
			report, err := verify.Session(t.Context(), l, info.ID)
			if err != nil {
				return err
			}
			for _, d := range report.Defects {
				t.Errorf("%s: %v", at, d)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
