//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

var verifyTrials = []trial{
	{
		rows: []row{{
			name:     "verify/jsonl",
			measured: "Verify of 64 sessions, all processors",
			against:  "SHA-256 of the same files one by one, through a 256 KiB buffer",
			unit:     mebibytes, bar: atLeast(0.5),
		}, {
			name:     "verify/jsonl-parallel",
			measured: "the same",
			against:  "SHA-256 of the same files on all processors",
			unit:     mebibytes,
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) { return verifyJSONL(ctx, b, 64, people) },
	},
	{
		rows: []row{{
			name:     "verify/jsonl-short",
			measured: "Verify of 64 sessions, messages of the user only, all processors",
			against:  "SHA-256 of the same files one by one",
			unit:     mebibytes,
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) { return verifyJSONL(ctx, b, 64, users) },
	},
	{
		rows: []row{{
			name:     "verify/jsonl-single",
			measured: "Verify of one session, all processors",
			against:  "SHA-256 of its file",
			unit:     mebibytes,
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) { return verifyJSONL(ctx, b, 1, people) },
	},
	{
		rows: []row{{
			name:     "verify/sqlite",
			measured: "Verify of 64 sessions, all processors",
			against:  "SHA-256 of their lines in files one by one",
			unit:     mebibytes,
		}},
		measure: verifySQLite,
	},
}

// verifyJSONL compares Verify with hashing on one processor and on all.
func verifyJSONL(ctx context.Context, b *bench, sessions int, events func(n int) []event.Event) ([]figure, error) {
	log, dir := b.jsonl(never)
	ids, err := b.fillSessions(ctx, log, sessions, events)
	if err != nil {
		return nil, err
	}
	files := make([]string, len(ids))
	for i, id := range ids {
		files[i] = filepath.Join(dir, id+".jsonl")
	}
	reader := b.open(jsonl.New(dir, jsonl.Options{ReadOnly: true}))
	return b.compareVerify(ctx, reader, ids, files)
}

func verifySQLite(ctx context.Context, b *bench) ([]figure, error) {
	log, path := b.sqlite(unsynced)
	ids, err := b.fillSessions(ctx, log, 64, people)
	if err != nil {
		return nil, err
	}
	files := make([]string, len(ids))
	for i, id := range ids {
		files[i] = b.path(".lines")
		if err := exportLines(ctx, log, id, files[i]); err != nil {
			return nil, err
		}
	}
	reader := b.open(sqlite.New(path, sqlite.Options{ReadOnly: true}))
	return b.compareVerify(ctx, reader, ids, files)
}

// fillSessions creates sessions that have b.sizes.verify bytes in total.
func (b *bench) fillSessions(ctx context.Context, log *eventlog.Log, sessions int, generate func(n int) []event.Event) (ids []string, err error) {
	const sample, envelope = 1000, 430 // of a line, in bytes
	size := sample * envelope
	for _, e := range generate(sample) {
		size += len(e.Data)
	}
	events := generate(b.sizes.verify / sessions / (size / sample))
	for range sessions {
		ids = append(ids, b.name())
		if err := appendAll(ctx, log, ids[len(ids)-1], events, batchLen); err != nil {
			return nil, err
		}
	}
	return ids, finishIndexing(ctx, log)
}

func exportLines(ctx context.Context, log *eventlog.Log, session, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(transfer.Export(ctx, log, f, session), f.Close())
}

func (b *bench) compareVerify(ctx context.Context, log *eventlog.Log, ids, files []string) ([]figure, error) {
	mebibytes := 0.0
	for _, file := range files {
		size, err := (&history{file: file}).size()
		if err != nil {
			return nil, err
		}
		mebibytes += size / (1 << 20)
	}
	took := func(start time.Time, err error) (float64, error) {
		return float64(time.Since(start).Nanoseconds()) / mebibytes, err
	}
	verify := func(ctx context.Context) (float64, error) {
		start, v := time.Now(), verify.New(log)
		return took(start, parallelN(runtime.GOMAXPROCS(0), len(ids), func(i int) error { return verifySound(ctx, v, ids[i]) }))
	}
	hash := func(processors int) side {
		return func(context.Context) (float64, error) {
			start := time.Now()
			return took(start, parallelN(processors, len(files), func(i int) error { return hashFile(files[i]) }))
		}
	}
	one, err := compare(ctx, b.sizes.rounds, verify, hash(1), samples.rates)
	if err != nil {
		return nil, err
	}
	all, err := compare(ctx, b.sizes.rounds, verify, hash(runtime.GOMAXPROCS(0)), samples.rates)
	return append(one, all...), err
}

// parallelN calls do n times, at most atATime calls concurrently.
func parallelN(atATime, n int, do func(i int) error) error {
	var next atomic.Int64
	return parallel(atATime, func(int) error {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	})
}

func verifySound(ctx context.Context, v *verify.Verifier, session string) error {
	report, err := v.Session(ctx, session)
	if err == nil && len(report.Defects) > 0 {
		err = fmt.Errorf("found %v", report.Defects[0])
	}
	return err
}

func hashFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	h := sha256.New()
	// The wrappers hide WriteTo and ReadFrom, so that CopyBuffer uses the buffer.
	_, err = io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, make([]byte, 256<<10))
	return errors.Join(err, f.Close())
}
