//go:build unix

// Command bench compares the log with the raw operations it consists of. It measures
// both sides in one run and compares the ratios with the project's bars.
//
//	go run ./internal/bench             every row but grow/, many/ and home/
//	go run ./internal/bench -quick      the same, smaller and noisier
//	go run ./internal/bench -run jsonl -json
//	go run ./internal/bench -run grow/  how the cost of an event grows with its session
//	go run ./internal/bench -run many/  how the cost of a session grows with its store
//	go run ./internal/bench -run home/  the import of 300 MB in 582 files, and lists and searches of it
//	go run ./internal/bench -long -run grow/
//
// The rows grow/ compare sessions of 1,000, 10,000 and 100,000 events, and many/ stores of
// 1,000 and 10,000 sessions. With -long they go ten times as far, which takes hours.
//
// Ratios are comparable between machines, times are not. The exit code is 1 if a ratio
// misses its bar. Rows without a bar are for information.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
)

// trials has all trials, in the order of the table.
var trials = slices.Concat(appendTrials, durableTrials, sqliteTrials, readTrials, replayTrials, growthTrials, growingTrials, manyTrials, treeTrials, copyTrials, importTrials, homeTrials, watchTrials, listTrials, binaryTrials, verifyTrials, searchTrials, flowTrials, postgresTrials, processTrials, largeTrials, jetstreamTrials)

// errBarMissed means that a ratio missed its bar.
var errBarMissed = errors.New("a bar falls short")

// flags of the command line.
type flags struct {
	quick   bool
	long    bool
	json    bool
	run     string
	dir     string
	profile string
}

func (f flags) sizes() sizes {
	s := full
	if f.quick {
		s = quick
	}
	if f.long {
		s.decades, s.stores, s.large = 4, 3, 1_000_000
	}
	return s
}

func main() {
	if job := os.Getenv(appenderVariable); job != "" {
		if err := appendFor(job); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	var f flags
	flag.BoolVar(&f.quick, "quick", false, "measure less, noisier")
	flag.BoolVar(&f.long, "long", false, "measure growth up to 1,000,000 events and a server with 1,000,000 sessions, which takes hours")
	flag.BoolVar(&f.json, "json", false, "print a JSON object per row")
	flag.StringVar(&f.run, "run", "", "measure only rows whose names match this `regexp`")
	flag.StringVar(&f.dir, "dir", "", "work below this `folder`, on a real disk")
	flag.StringVar(&f.profile, "cpuprofile", "", "write a CPU profile to this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags) (err error) {
	wanted, err := regexp.Compile(f.run)
	if err != nil {
		return err
	}
	if f.profile != "" {
		stop, err := profile(f.profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	b, err := newBench(f.dir, f.sizes())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	chosen := slices.DeleteFunc(slices.Clone(trials), func(t trial) bool { return t.named && f.run == "" && !f.long })
	if f.json {
		return measure(ctx, b, chosen, wanted, printJSON)
	}
	fmt.Printf("%s, %s/%s, %d CPUs\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	printHeading()
	return measure(ctx, b, chosen, wanted, printRow)
}

// measure runs the chosen trials that have a wanted row, and prints the wanted rows.
func measure(ctx context.Context, b *bench, chosen []trial, wanted *regexp.Regexp, print func(row, figure) error) error {
	short := false
	for _, t := range chosen {
		if !slices.ContainsFunc(t.rows, func(r row) bool { return wanted.MatchString(r.name) }) {
			continue
		}
		figures, err := t.measure(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", t.rows[0].name, err)
		}
		for i, r := range t.rows {
			if !wanted.MatchString(r.name) {
				continue
			}
			short = short || !r.bar.met(figures[i].ratio)
			if err := print(r, figures[i]); err != nil {
				return err
			}
		}
	}
	if short {
		return errBarMissed
	}
	return nil
}

func profile(path string) (stop func() error, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
