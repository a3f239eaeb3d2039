//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

var binaryTrials = []trial{
	{
		rows: []row{{
			name:     "start",
			measured: "logtool version, as a process",
			against:  "a Go program that does nothing",
			unit:     nanoseconds,
		}},
		measure: start,
	},
	{
		rows: []row{{
			name:     "list/logtool",
			measured: "logtool ls of 10,000 sessions, as a process, per session",
			against:  "opening each file and reading 4 KiB at its start and at its end",
			unit:     nanoseconds,
		}},
		measure: listWithLogtool,
	},
}

// emptyProgram is a program that does nothing.
const emptyProgram = "package main\n\nfunc main() {}\n"

func start(ctx context.Context, b *bench) ([]figure, error) {
	logtool, err := b.logtool(ctx)
	if err != nil {
		return nil, err
	}
	source, bare := b.path(".go"), b.path("")
	if err := os.WriteFile(source, []byte(emptyProgram), 0o600); err != nil {
		return nil, err
	}
	if err := build(ctx, bare, source); err != nil {
		return nil, err
	}
	const times = 10
	exec := func(args ...string) side {
		return func(ctx context.Context) (float64, error) {
			began := time.Now()
			for range times {
				if err := execute(ctx, args...); err != nil {
					return 0, err
				}
			}
			return perItem(began, times), nil
		}
	}
	return compare(ctx, b.sizes.rounds, exec(logtool, "version"), exec(bare), samples.times)
}

func listWithLogtool(ctx context.Context, b *bench) ([]figure, error) {
	large, err := b.largeStore(ctx)
	if err != nil {
		return nil, err
	}
	logtool, err := b.logtool(ctx)
	if err != nil {
		return nil, err
	}
	want := len(large.sessions)
	list := func(ctx context.Context) (float64, error) {
		began := time.Now()
		err := execute(ctx, logtool, "--store", large.dir, "ls")
		return perItem(began, want), err
	}
	raw := func(context.Context) (float64, error) {
		began := time.Now()
		_, err := rawList(large.dir)
		return perItem(began, want), err
	}
	return compare(ctx, b.sizes.rounds, list, raw, samples.times)
}

// logtool builds logtool on the first call. The bench must run in the module.
func (b *bench) logtool(ctx context.Context) (path string, err error) {
	path = filepath.Join(b.dir, "logtool")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, build(ctx, path, "github.com/convlog/convlog/cmd/logtool")
}

func build(ctx context.Context, to, what string) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-o", to, what).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w: %s", what, err, out)
	}
	return nil
}

func execute(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	return cmd.Run()
}
