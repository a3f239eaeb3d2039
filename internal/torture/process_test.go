//go:build unix

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

	"github.com/convlog/convlog/internal/suite"
)

// jobVariable is the environment variable with the job of a child process, as JSON.
const jobVariable = "CONVLOG_TORTURE_JOB"

// job is the work of a child process.
type job struct {
	Do      string // write, read, watch, flush, hold, lease, agent, runner, wait, many
	Backend string
	Dir     string
	Seed    uint64
	Writer  int           // write: number of the first writer
	Steps   []int         // write: first step of each writer
	From    int           // flush: first number
	To      int           // write: step to stop before; 0 is never; lease, many: number of leases or sessions; agent: number of turns
	Pause   time.Duration // write: pause between two steps
	Levels  int           // agent, runner: levels of children below the session
	How     string        // hold: where to stop; watch: the expected error; agent, runner, wait: how to run
}

// runJob runs the child process. It ends when its standard input ends, so that no child
// outlives the test.
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
	case "agent":
		err = agentJob(ctx, b, j)
	case "runner":
		err = runnerJob(ctx, b, j)
	case "wait":
		err = waitJob(ctx, b, j)
	case "many":
		err = manyJob(ctx, b, j)
	case "flush":
		err = flushJob(ctx, b, j)
	case "lease":
		err = leaseJob(ctx, b, j)
	default:
		err = fmt.Errorf("unknown job %q", j.Do)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// writeJob runs the writers of a process over one log. An error of a writer ends all.
func writeJob(ctx context.Context, b backend, j job) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := b.log(j.Dir)
	errs := suite.Concurrently(len(j.Steps), func(i int) error {
		w := writer{log: log, seed: j.Seed, name: j.Writer + i, pause: j.Pause}
		w.report = func(verb string, n int, seq int64) { fmt.Printf("%s %d %d %d\n", verb, n, seq, w.name) }
		err := w.run(ctx, j.Steps[i], j.To)
		if err != nil {
			cancel()
		}
		return err
	})
	return errors.Join(errors.Join(errs...), log.Close())
}

// report prints a line for the parent, in one write.
func report(verb string, n int, seq int64) { fmt.Printf("%s %d %d\n", verb, n, seq) }

// child is a child process.
type child struct {
	fixture *fixture
	cmd     *exec.Cmd
	in      io.Closer
	silent  chan struct{} // closed when all its output was handled
	errs    *limitedBuffer
}

// start starts a child process, which is killed when the test ends. It calls hear with
// each line of output.
func (s *fixture) start(j job, hear func(line string)) *child {
	s.Helper()
	j.Backend, j.Dir, j.Seed, j.Levels = s.backend.name, s.dir, s.seed, s.levels
	text, err := json.Marshal(j)
	s.must(err)
	exe, err := os.Executable()
	s.must(err)
	c := &child{fixture: s, cmd: exec.Command(exe), silent: make(chan struct{}), errs: new(limitedBuffer)}
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
	defer close(c.silent)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		hear(lines.Text())
	}
}

// kill kills the child, stopped or not, and waits for its output. It returns an error
// if the child has ended by itself.
func (c *child) kill() error {
	killing := c.cmd.Process.Kill()
	<-c.silent
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return killing
	}
	return fmt.Errorf("a child ended by itself: %w: %s", errors.Join(err, killing), c.errs)
}

// stacks ends the child and returns the stacks of its goroutines.
func (c *child) stacks() string {
	_ = c.cmd.Process.Signal(syscall.SIGQUIT)
	_ = c.cmd.Process.Signal(syscall.SIGCONT) // a stopped process takes no signal
	_ = c.finish()                            // it reports the signal
	return c.errs.String()
}

// finish waits for a child that ends by itself.
func (c *child) finish() error {
	<-c.silent
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("child: %w: %s", err, c.errs)
	}
	return nil
}

// maxErrors bounds what is kept of the errors of a child: the stacks of its goroutines fit.
const maxErrors = 256 << 10

// limitedBuffer keeps the first maxErrors bytes written to it, and the rest of a write.
type limitedBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (l *limitedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) < maxErrors {
		l.text = append(l.text, b...)
	}
	return len(b), nil
}

func (l *limitedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
