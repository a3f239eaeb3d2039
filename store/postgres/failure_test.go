package postgres

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/convlog/convlog/eventlog"
)

// The deadline of a context may end the dialling of a socket before the context notices
// it. The socket's own error is the context's to a caller.
func TestDeadlineOfSocket(t *testing.T) {
	config, err := pgconn.ParseConfig("postgres://u:secret@127.0.0.1:1/db?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
	_, dialling := pgconn.ConnectConfig(t.Context(), config)
	s := &Store{lifetime: context.Background()}
	if err := s.failure(dialling); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("got %v for the dialling, want ErrUnavailable and DeadlineExceeded", err)
	}
	reading := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	if err := s.failure(reading); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v for the reading, want DeadlineExceeded", err)
	}
}
