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
	"github.com/convlog/convlog/store/postgres"
)

// The rows of a log on a server that several processes use.
var processTrials = []trial{
	{
		rows: []row{{
			name:     "postgres/processes",
			measured: "Append by 16 processes to one session, synced",
			against:  "Append by one process",
			unit:     perSecond, bar: atLeast(0.4),
		}, {
			name:     "postgres/processes-slowest",
			measured: "the slowest Append of the 16 processes",
			unit:     nanoseconds, bar: atMost(2e9),
		}},
		measure: postgresProcesses,
	},
	{
		rows: []row{{
			name:     "postgres/watch",
			measured: "time from the start of an Append until the watcher of another log has the event",
			against:  "INSERT of the same line and columns in a transaction of its own, same driver",
			unit:     nanoseconds, bar: atMost(5),
		}},
		measure: postgresWatch,
	},
	{
		rows: []row{{
			name:     "postgres/idle",
			measured: "statements per second that 1,000 watched sessions cost, from 25 s after the last append",
			unit:     count, bar: atMost(2),
		}},
		measure: postgresIdle,
	},
}

// appenderVariable is the environment variable with the job of a child process, as JSON.
const appenderVariable = "CONVLOG_BENCH_APPENDER"

// appender is a process that appends events to a session, one by one.
type appender struct {
	DSN, Session string
	Events       int
}

// appendFor runs the job of a child process. It says when it is ready, begins when its
// input has a line, and reports its slowest append.
func appendFor(text string) error {
	var a appender
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	store, err := postgres.New(a.DSN)
	if err != nil {
		return err
	}
	ctx, log := context.Background(), eventlog.Open(store)
	if _, err := log.Head(ctx, a.Session); err != nil {
		return err
	}
	events := users(a.Events)
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	var slowest time.Duration
	for _, e := range events {
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

func postgresProcesses(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	var slowest time.Duration
	by := func(n int) side {
		return func(ctx context.Context) (float64, error) {
			took, slow, err := p.timeProcesses(ctx, n)
			slowest = max(slowest, slow)
			return took, err
		}
	}
	s, err := pair(ctx, b.sizes.rounds, by(workers), by(1))
	if err != nil {
		return nil, err
	}
	return []figure{s.rates(), single(float64(slowest))}, nil
}

// timeProcesses lets n processes append to a new session at the same time.
func (p *postgresBench) timeProcesses(ctx context.Context, n int) (perEvent float64, slowest time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the processes after an error
	session := p.name()
	if err := appendEach(ctx, p.log, session, users(startLen)); err != nil {
		return 0, 0, err
	}
	each := p.sizes.durable / n
	processes := make([]*process, n)
	for i := range processes {
		if processes[i], err = (appender{p.dsn, session, each}).start(ctx); err != nil {
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

// postgresWatch compares medians: each event is appended after the watcher has the one
// before.
func postgresWatch(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	other, err := postgres.New(p.dsn)
	if err != nil {
		return nil, err
	}
	watching := eventlog.Open(other)
	defer watching.Close()
	events := people(b.sizes.durable)
	stored, err := b.storedEvents(ctx, events)
	if err != nil {
		return nil, err
	}
	seen := func(ctx context.Context) (float64, error) {
		session := b.name()
		if err := appendEach(ctx, p.log, session, events[:startLen]); err != nil {
			return 0, err
		}
		return timeSeen(ctx, p.log, watching, session, events[startLen:])
	}
	bare := func(ctx context.Context) (float64, error) {
		var took []float64
		for i := range stored {
			start := time.Now()
			if err := p.insert(ctx, stored[i:i+1]); err != nil {
				return 0, err
			}
			took = append(took, float64(time.Since(start)))
		}
		return median(took), nil
	}
	return compare(ctx, b.sizes.rounds, seen, bare, samples.times)
}

// timeSeen is the median time until the watcher of a log has an event that another log
// appends.
func timeSeen(ctx context.Context, log, watching *eventlog.Log, session string, events []event.Event) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type sight struct {
		at  time.Time
		err error
	}
	sights := make(chan sight)
	go func() {
		for _, err := range watching.Watch(ctx, session, startLen) {
			select {
			case sights <- sight{time.Now(), err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	if first := <-sights; first.err != nil {
		return 0, first.err
	}
	var took []float64
	for i := range events {
		start := time.Now()
		if _, err := log.Append(ctx, session, eventlog.Any(), events[i]); err != nil {
			return 0, err
		}
		s := <-sights
		if s.err != nil {
			return 0, s.err
		}
		took = append(took, float64(s.at.Sub(start)))
	}
	return median(took), nil
}

// postgresIdle counts the statements in the log of the server. The backstop of watchers
// asks every ten seconds.
func postgresIdle(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.postgres(ctx, "-c", "log_statement=all")
	if err != nil {
		return nil, err
	}
	defer p.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const watched = 1000
	seen := make(chan error, watched)
	for range watched {
		session := b.name()
		if _, err := p.log.Append(ctx, session, eventlog.New(), event.UserMessage("hello")); err != nil {
			return nil, err
		}
		go func() {
			for _, err := range p.log.Watch(ctx, session, 1) {
				seen <- err
			}
		}()
	}
	for range watched {
		if err := <-seen; err != nil {
			return nil, err
		}
	}
	time.Sleep(25 * time.Second) // the last notifications, and the first comparisons of the backstop
	before, err := p.server.Statements()
	if err != nil {
		return nil, err
	}
	const idle = 30 * time.Second
	time.Sleep(idle)
	after, err := p.server.Statements()
	return []figure{single(float64(after-before) / idle.Seconds())}, err
}
