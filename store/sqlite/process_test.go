package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// The tests of several processes run the test binary again, with the job of
// the child in this variable.
const childJob = "CONVLOG_SQLITE_CHILD"

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(childJob)); len(args) > 0 {
		if err := runChild(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child starts a child process; its path must not contain spaces.
func child(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childJob+"="+strings.Join(args, " "))
	cmd.Stderr = os.Stderr
	return cmd
}

func runChild(args []string) error {
	s := New(args[1])
	switch args[0] {
	case "append":
		n, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		return errors.Join(appendMany(s, strings.Split(args[2], ","), n), s.Close())
	case "hold":
		return holdUntilEOF(args[1])
	default:
		return fmt.Errorf("unknown job %q", args[0])
	}
}

// appendMany appends n events to each session in turn, for ever if n is 0, and
// prints each one once it was acknowledged.
func appendMany(s *Store, sessions []string, n int) error {
	heads := make([]eventlog.Head, len(sessions))
	for i := 0; n == 0 || i < n; i++ {
		for j, session := range sessions {
			var err error
			if heads[j], err = appendSomewhere(s, session, heads[j]); err != nil {
				return err
			}
			fmt.Println(session, heads[j].Seq, heads[j].Hash)
		}
	}
	return nil
}

// appendSomewhere appends one event after whatever the head is.
func appendSomewhere(s *Store, session string, head eventlog.Head) (eventlog.Head, error) {
	for {
		events := chained(session, head, 1+int(head.Seq%3), "x")
		err := s.Append(context.Background(), session, head, events, false)
		var conflict *eventlog.ConflictError
		if errors.As(err, &conflict) {
			head = conflict.Actual
			continue
		}
		return headOf(events), err
	}
}

// holdUntilEOF holds the write lock until its input ends.
func holdUntilEOF(path string) error {
	c, err := dial(path, "mode=rw")
	if err != nil {
		return err
	}
	if err := c.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	fmt.Println("holding")
	_, err = bufio.NewReader(os.Stdin).ReadByte()
	if err == nil {
		return errors.New("unexpected input")
	}
	return c.run("ROLLBACK")
}

// ack is what a child printed for an acknowledged append.
type ack struct {
	session string
	head    eventlog.Head
}

func parseAck(t testing.TB, line string) ack {
	t.Helper()
	fields := strings.Fields(line)
	if len(fields) != 3 {
		t.Fatalf("child said %q", line)
	}
	seq, err := strconv.ParseInt(fields[1], 10, 64)
	must(t, err)
	hash, err := eventlog.ParseHash(fields[2])
	must(t, err)
	return ack{fields[0], eventlog.Head{Seq: seq, Hash: hash}}
}

// wantAcks makes sure that every acknowledged event is there, and that every
// session is whole.
func wantAcks(t testing.TB, path string, acks []ack) {
	t.Helper()
	s := New(path)
	stored := map[string][]eventlog.Event{}
	for _, a := range acks {
		events, ok := stored[a.session]
		if !ok {
			var err error
			events, err = collect(s.Read(t.Context(), a.session, eventlog.Span{}))
			must(t, err)
			stored[a.session] = events
			if last := events[len(events)-1]; last.More() != 0 {
				t.Errorf("session %s ends inside an append", a.session)
			}
		}
		if a.head.Seq > int64(len(events)) || events[a.head.Seq-1].Hash() != a.head.Hash {
			t.Errorf("session %s lost event %v, which was acknowledged", a.session, a.head)
		}
	}
	must(t, s.Close())
}

func TestTwoProcesses(t *testing.T) {
	path := tempPath(t)
	const each = 60
	cmds := []*exec.Cmd{
		child(t, "append", path, "shared,a,b", fmt.Sprint(each)),
		child(t, "append", path, "shared,c,d", fmt.Sprint(each)),
	}
	outs := make([]strings.Builder, len(cmds))
	for i, cmd := range cmds {
		cmd.Stdout = &outs[i]
		must(t, cmd.Start())
	}
	for _, cmd := range cmds {
		must(t, cmd.Wait())
	}
	var acks []ack
	for i := range outs {
		for line := range strings.Lines(outs[i].String()) {
			acks = append(acks, parseAck(t, line))
		}
	}
	if len(acks) != 2*3*each {
		t.Errorf("%d appends were acknowledged", len(acks))
	}
	wantAcks(t, path, acks)
}

// Killed in the middle of appending, 20 times over one file: what was
// acknowledged stays.
func TestKill(t *testing.T) {
	path := tempPath(t)
	var acks []ack
	for kill := range 20 {
		cmd := child(t, "append", path, "a,b,c", "0")
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; n < 5+7*kill%40 && lines.Scan(); n++ {
			acks = append(acks, parseAck(t, lines.Text()))
		}
		must(t, cmd.Process.Kill())
		for lines.Scan() { // what it still said before it died
			if fields := strings.Fields(lines.Text()); len(fields) == 3 && len(fields[2]) == 64 {
				acks = append(acks, parseAck(t, lines.Text()))
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child was not killed")
		}
		wantAcks(t, path, acks)
	}
}

// A deadline is honoured while another process has the write lock.
func TestDeadlineWhileProcessHolds(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	head := add(t, s, "a", eventlog.Head{}, 1, "x")
	cmd := child(t, "hold", path)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "holding\n" {
		t.Fatalf("child said %q, %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	want(t, context.DeadlineExceeded, s.Append(ctx, "a", head, chained("a", head, 1, "x"), false))
	if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 1 {
		t.Errorf("got %v while the lock is held", got)
	}
	must(t, in.Close())
	add(t, s, "a", head, 1, "x")
	must(t, cmd.Wait())
}
