package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// jobVariable holds the job of a child process, as JSON.
const jobVariable = "CONVLOG_TORTURE_JOB"

// job is what a child process does.
type job struct {
	Do      string // write, read, watch, hold
	Backend string
	Dir     string
	Seed    uint64
	Writer  int           // of write
	From    int           // of write: the first step
	To      int           // of write: where to stop; 0 is never
	Pause   time.Duration // of write: between two steps
	How     string        // of hold
}

// runJob is the child process. It ends when its standard input does, so that
// none outlives the test.
func runJob(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	b, err := backendNamed(j.Backend)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	switch j.Do {
	case "write":
		err = writeJob(ctx, b, j)
	case "read":
		err = readJob(ctx, b, j)
	case "watch":
		err = watchJob(ctx, b, j)
	case "hold":
		err = holdJob(ctx, b, j)
	default:
		err = fmt.Errorf("unknown job %q", j.Do)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func writeJob(ctx context.Context, b backend, j job) error {
	log := b.log(j.Dir)
	w := writer{log: log, seed: j.Seed, name: j.Writer, pause: j.Pause, say: say}
	return errors.Join(w.run(ctx, j.From, j.To), log.Close())
}

// say prints a line for the parent, in one write.
func say(verb string, n int, seq int64) { fmt.Printf("%s %d %d\n", verb, n, seq) }

// child is a child process, as its parent sees it.
type child struct {
	scene *scene
	cmd   *exec.Cmd
	in    io.Closer
	mute  chan struct{} // closed when all it said was heard
	errs  *firstWords
}

// start starts a child process, which is killed when the test ends. hear is
// called with each line that it says.
func (s *scene) start(j job, hear func(line string)) *child {
	s.Helper()
	j.Backend, j.Dir, j.Seed = s.backend.name, s.dir, s.seed
	text, err := json.Marshal(j)
	s.must(err)
	exe, err := os.Executable()
	s.must(err)
	c := &child{scene: s, cmd: exec.Command(exe), mute: make(chan struct{}), errs: new(firstWords)}
	c.cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	c.cmd.Stderr = c.errs
	out, err := c.cmd.StdoutPipe()
	s.must(err)
	c.in, err = c.cmd.StdinPipe()
	s.must(err)
	s.must(c.cmd.Start())
	go c.listen(out, hear)
	s.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

func (c *child) listen(out io.Reader, hear func(line string)) {
	defer close(c.mute)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		hear(lines.Text())
	}
}

// kill kills the child, stopped or not, hears what it has said, and buries it.
// It is an error if it has ended by itself.
func (c *child) kill() error {
	killing := c.cmd.Process.Kill()
	<-c.mute
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return killing
	}
	return fmt.Errorf("a child ended by itself: %w: %s", errors.Join(err, killing), c.errs)
}

// finish waits for a child that ends by itself.
func (c *child) finish() error {
	<-c.mute
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("child: %w: %s", err, c.errs)
	}
	return nil
}

// firstWords keeps the beginning of what is written to it.
type firstWords struct {
	mu   sync.Mutex
	text []byte
}

func (l *firstWords) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) < 4<<10 {
		l.text = append(l.text, b...)
	}
	return len(b), nil
}

func (l *firstWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
