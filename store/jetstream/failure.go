package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var (
	// ErrNoLog reports that the account has no log with the prefix. Open it for writing
	// once, or name another prefix.
	ErrNoLog = errors.New("no log")
	// ErrDenied reports that the server refuses the user: a wrong password, or a missing
	// right, which the error names. Correct the URL or the credentials, or grant the
	// right.
	ErrDenied = errors.New("the server denies access")
	// ErrForeign reports a server or streams that this program must not use: JetStream is
	// off, the server is too old or its messages are too small, a stream has other settings
	// or too few replicas, or an account or a stream is at its limit.
	ErrForeign = errors.New("not a server for a log")
	// ErrNotSynced refuses an append that demands durability, because Options.Synced
	// does not say that the servers sync every write. Run the servers with
	// sync_interval: always, and set Synced.
	ErrNotSynced = fmt.Errorf("%w: the servers may not sync every write: run them with sync_interval: always, and set the option synced", eventlog.ErrUnsupported)
)

// Codes of JetStream's errors.
const (
	codeAccountLimit    = 10002
	codeNoPeers         = 10005
	codeNotAvailable    = 10008
	codeNotLeader       = 10009
	codeNoResources     = 10023
	codeStreamLimit     = 10027
	codeNoMessage       = 10037
	codeNotForAccount   = 10039
	codeNoSequence      = 10043
	codeNoStorage       = 10047
	codeMessageTooLarge = 10054
	codeNotDeleted      = 10057
	codeNameExists      = 10058
	codeStreamNotFound  = 10059
	codeWrongSequence   = 10071
	codeOneServer       = 10074
	codeOff             = 10076
	codeStoreFailed     = 10077
	codeNeedsMaxBytes   = 10113
	codeIDInProcess     = 10158
	codeSubjectInUse    = 10164
	codeIncompleteBatch = 10176
	codeManyBatches     = 10210
)

// apiError is an error that JetStream answers with. The request changed nothing.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
	resent      bool   // the request was sent more than once: an earlier sending may have succeeded
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.Description, e.ErrCode) }

func isCode(err error, codes ...int) bool {
	var answer *apiError
	if !errors.As(err, &answer) {
		return false
	}
	for _, code := range codes {
		if answer.ErrCode == code {
			return true
		}
	}
	return false
}

// isBusy reports whether the same request may succeed soon: a leader is being elected, a
// server of the cluster is not up yet, or another message of the subject is not stored yet.
func (e *apiError) isBusy() bool {
	switch e.ErrCode {
	case codeNotAvailable, codeNotLeader, codeIDInProcess, codeSubjectInUse, codeIncompleteBatch, codeManyBatches:
		return true
	case codeNoPeers:
		return strings.Contains(e.Description, "offline")
	}
	return false
}

// failure is an error of the server or the driver in the terms of package eventlog.
func (s *Store) failure(err error) error {
	var answer *apiError
	switch {
	case err == nil:
		return nil
	case s.lifetime.Err() != nil:
		return eventlog.ErrClosed
	case errors.As(err, &answer):
		return answer.classify()
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrPermissionViolation):
		return fmt.Errorf("%w: %s", ErrDenied, oneLine(err.Error()))
	case errors.Is(err, eventlog.ErrUnavailable):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, ErrDenied), errors.Is(err, ErrForeign), errors.Is(err, event.ErrVersion), errors.Is(err, eventlog.ErrCorrupt):
		return err
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: no server answers: wait for a leader of the stream", eventlog.ErrUnavailable)
	default:
		return fmt.Errorf("%w: %s", eventlog.ErrUnavailable, oneLine(err.Error()))
	}
}

func (e *apiError) classify() error {
	if e.isBusy() {
		return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, e)
	}
	switch e.ErrCode {
	case codeStreamNotFound:
		return fmt.Errorf("%w: %w", eventlog.ErrMoved, e)
	case codeOff, codeNotForAccount:
		return fmt.Errorf("%w: turn JetStream on for the server and the account: %w", ErrForeign, e)
	case codeAccountLimit, codeNoStorage, codeStoreFailed, codeNameExists:
		return fmt.Errorf("%w: raise the limits of the account, the stream or the disk: %w", ErrForeign, e)
	case codeStreamLimit:
		return fmt.Errorf("%w: raise the number of streams that the account may have: %w", ErrForeign, e)
	case codeNeedsMaxBytes:
		return fmt.Errorf("%w: let the account have streams without max_bytes: %w", ErrForeign, e)
	case codeOneServer, codeNoPeers:
		return fmt.Errorf("%w: run as many servers as the option replicas says, or lower it: %w", ErrForeign, e)
	case codeMessageTooLarge:
		return fmt.Errorf("%w: raise max_payload of the server or max_msg_size of the stream: %w", ErrForeign, e)
	case codeNoResources:
		return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, e)
	}
	if e.Code == 503 {
		return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, e)
	}
	return e
}

// wrap adds a phrase to an error. A nil error stays nil.
func wrap(phrase string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", phrase, err)
}

// oneLine joins the lines of an error.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
