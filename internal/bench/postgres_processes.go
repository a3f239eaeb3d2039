//go:build unix

package main

import (
	"context"
	"time"
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

func postgresProcesses(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.processes(ctx)
}

func postgresWatch(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.watches(ctx, p.insert)
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
	if err := p.watchIdle(ctx); err != nil {
		return nil, err
	}
	before, err := p.server.Statements()
	if err != nil {
		return nil, err
	}
	time.Sleep(idleTime)
	after, err := p.server.Statements()
	return []figure{single(float64(after-before) / idleTime.Seconds())}, err
}
