//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// appenderVariable is the environment variable with the job of a child process, as JSON.
const appenderVariable = "CONVLOG_BENCH_APPENDER"

// appender is a process that appends events to a session, one by one.
type appender struct {
	URL, Session string
	Events       int
}

// appendFor runs the job of a child process. It says when it is ready, begins when its
// input has a line, and reports its slowest append.
func appendFor(text string) error {
	var a appender
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	store, err := openServer(a.URL)
	if err != nil {
		return err
	}
	ctx, log := context.Background(), eventlog.Open(store)
	events := users(a.Events + 1)
	// The process has written before: the time has no connections and no first statements.
	if _, err := log.Append(ctx, event.NewID().String(), eventlog.New(), events[a.Events]); err != nil {
		return err
	}
	if _, err := log.Head(ctx, a.Session); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	var slowest time.Duration
	for _, e := range events[:a.Events] {
		start := time.Now()
		if _, err := log.Append(ctx, a.Session, eventlog.Any(), e); err != nil {
			return err
		}
		slowest = max(slowest, time.Since(start))
	}
	fmt.Println(slowest.Nanoseconds())
	return log.Close()
}

// process is a running appender.
type process struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func (a appender) start(ctx context.Context) (*process, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, exe)}
	p.cmd.Env = append(os.Environ(), appenderVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = p.line()
	return p, err
}

// line is the next line that the process prints.
func (p *process) line() (string, error) {
	line, err := p.out.ReadString('\n')
	return strings.TrimSpace(line), err
}

// processes compares appends to one session: by 16 processes, and by one.
// The second figure is the slowest append.
func (s *serverBench) processes(ctx context.Context) ([]figure, error) {
	var slowest time.Duration
	by := func(n int) side {
		return func(ctx context.Context) (float64, error) {
			took, slow, err := s.timeProcesses(ctx, n)
			slowest = max(slowest, slow)
			return took, err
		}
	}
	rates, err := pair(ctx, s.sizes.rounds, by(workers), by(1))
	if err != nil {
		return nil, err
	}
	return []figure{rates.rates(), single(float64(slowest))}, nil
}

// timeProcesses lets n processes append to a new session at the same time.
func (s *serverBench) timeProcesses(ctx context.Context, n int) (perEvent float64, slowest time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the processes after an error
	session := s.name()
	if err := appendEach(ctx, s.log, session, users(startLen)); err != nil {
		return 0, 0, err
	}
	each := s.sizes.shared / n
	processes := make([]*process, n)
	for i := range processes {
		if processes[i], err = (appender{s.url, session, each}).start(ctx); err != nil {
			return 0, 0, err
		}
	}
	start := time.Now()
	for _, one := range processes {
		if _, err := io.WriteString(one.in, "\n"); err != nil {
			return 0, 0, err
		}
	}
	for _, one := range processes {
		text, reading := one.line()
		nanoseconds, parsing := strconv.ParseInt(text, 10, 64)
		if err := errors.Join(reading, parsing); err != nil {
			return 0, 0, err
		}
		slowest = max(slowest, time.Duration(nanoseconds))
	}
	perEvent = perItem(start, n*each)
	for _, one := range processes {
		err = errors.Join(err, one.cmd.Wait())
	}
	return perEvent, slowest, err
}
