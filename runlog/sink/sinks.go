package sink

import (
	"context"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog"
)

// Sinks get the snapshots and the accounting of sessions. A sink that fails, panics or
// blocks is a warning, and never an error of the session. The zero Sinks do nothing. Set
// the fields before the first use; then Sinks may be used concurrently, for any number of
// sessions, and must not be copied.
//
//	run := sinks.Run(log, "order-42", "")
//	defer run.Finish(ctx)
//	… // run.ChildFinished(ctx) after each child
type Sinks struct {
	// Folder gets the op tree files, unless Snapshot is set. Empty is no folder.
	Folder OpTreeFolder
	// Snapshot gets the op trees instead of Folder.
	Snapshot func(ctx context.Context, tree *runlog.OpTreeFile) error
	// Ledger gets the costs, unless Account is set. The caller closes it.
	Ledger *Ledger
	// Account gets the costs instead of Ledger. After it returned nil, an
	// accounting_flushed event with the ledger "callback" is appended to the session.
	// Account may get entries again that it has got before, if it returned an error or the
	// process was killed: compare their EventID.
	Account func(ctx context.Context, a Accounts) error
	// Timeout is the longest time that a call of a Run waits for a sink; 5 seconds if 0.
	// Then the context of the sink ends. A sink that ignores it is not called again until
	// it has returned.
	Timeout time.Duration
	// Warn gets each warning, before the method that had it returns. It must not block.
	Warn func(*Error)
	// Now is the clock of the snapshots; time.Now if nil.
	Now func() time.Time

	snapshots, accounts sink
}

// Accounts are new costs of a session.
type Accounts struct {
	SessionID string `json:"sessionId"`
	OriginID  string `json:"originId"`
	// Timestamp is in milliseconds since 1970.
	Timestamp int64         `json:"timestamp"`
	Entries   []LedgerEntry `json:"entries"`
}

// callbackLedger is the name of the ledger in accounting_flushed events for Sinks.Account.
const callbackLedger = "callback"

// defaultSinkTimeout is the default of Sinks.Timeout.
const defaultSinkTimeout = 5 * time.Second

// The reasons of snapshots.
const (
	reasonChildFinished = "subagent_finish"
	reasonFinal         = "final"
)

// Run is the sinks of one run of a session. It may be used concurrently.
type Run struct {
	sinks           *Sinks
	log             *eventlog.Log
	session, origin string

	mu       sync.Mutex
	finished bool
}

// Run returns the sinks of a run of a session. The origin is the root session of the tree
// of agents; empty is the session itself. Sinks that are nil do nothing.
func (s *Sinks) Run(log *eventlog.Log, session, origin string) *Run {
	if origin == "" {
		origin = session
	}
	return &Run{sinks: s, log: log, session: session, origin: origin}
}

// ChildFinished gives the op tree of the session to the snapshot sink, with the reason
// subagent_finish. If an earlier call still blocks the sink, the snapshot is skipped with
// a warning. After Finish it does nothing. The end of ctx does not end the call.
func (r *Run) ChildFinished(ctx context.Context) []*Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return nil
	}
	return r.snapshot(ctx, reasonChildFinished)
}

// Finish gives the final op tree of the session to the snapshot sink, with the reason
// final, and then its new costs to the accounting sink, whatever the outcome of the first.
// Call it once the session has its last event, also if the session failed or was aborted;
// a second call does nothing. A call waits for a blocked sink until the timeout. The end of
// ctx does not end the call.
func (r *Run) Finish(ctx context.Context) []*Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return nil
	}
	r.finished = true
	return append(r.snapshot(ctx, reasonFinal), r.account(ctx)...)
}

func (r *Run) snapshot(ctx context.Context, reason string) []*Error {
	s := r.sinks
	if s == nil || s.Snapshot == nil && s.Folder == "" {
		return nil
	}
	write := s.Snapshot
	if write == nil {
		write = s.Folder.Write
	}
	err := s.snapshots.call(ctx, s.timeout(), reason == reasonFinal, func(ctx context.Context) error {
		run, err := runlog.Load(ctx, r.log, r.session)
		if err != nil {
			return err
		}
		return write(ctx, run.OpTreeFile(runlog.OpTreeOptions{Reason: reason, OriginID: r.origin, Now: s.Now}))
	})
	return s.warn(err, Error{Sink: "snapshot", Session: r.session, Reason: reason})
}

func (r *Run) account(ctx context.Context) []*Error {
	s := r.sinks
	if s == nil || s.Account == nil && s.Ledger == nil {
		return nil
	}
	err := s.accounts.call(ctx, s.timeout(), true, func(ctx context.Context) (err error) {
		if s.Account == nil {
			_, _, err = s.Ledger.Flush(ctx, r.log, r.session)
			return err
		}
		_, _, err = flushAccounting(ctx, r.log, r.session, callbackLedger, func(ctx context.Context, entries []LedgerEntry) error {
			return s.Account(ctx, Accounts{r.session, r.origin, s.now().UnixMilli(), entries})
		})
		return err
	})
	return s.warn(err, Error{Sink: "account", Session: r.session, Reason: reasonFinal})
}

func (s *Sinks) timeout() time.Duration {
	if s.Timeout <= 0 {
		return defaultSinkTimeout
	}
	return s.Timeout
}

func (s *Sinks) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// warn makes a warning of an error, and gives it to Warn.
func (s *Sinks) warn(err error, w Error) []*Error {
	if err == nil {
		return nil
	}
	w.Cause = err
	if s.Warn != nil {
		func() {
			defer func() { _ = recover() }() // the session goes on
			s.Warn(&w)
		}()
	}
	return []*Error{&w}
}
