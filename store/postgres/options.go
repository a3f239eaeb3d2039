package postgres

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options configures a Store. The zero value is right for most programs.
type Options struct {
	// ReadOnly opens the log for reading only. Writes return eventlog.ErrReadOnly, and
	// the store creates nothing. A standby server will do.
	ReadOnly bool
	// MustExist refuses a schema without a log, with ErrNoLog, instead of creating it.
	// ReadOnly does so too.
	MustExist bool
	// MustCreate refuses a schema that exists, with ErrExists. The first call on the store
	// creates the tables.
	MustCreate bool
	// LockTimeout bounds the wait for the store lock of another process. After it the
	// error is eventlog.ErrLocked. Without a LockTimeout only the caller's context bounds
	// the wait.
	LockTimeout time.Duration
	// LeaseTime is how long a lease outlives a process that stops, or that the server
	// cannot reach and does not find dead; 15 s if 0. The store renews its leases three
	// times in that time. A lease outlives a killed process by a second.
	LeaseTime time.Duration
}

const (
	defaultSchema    = "convlog"
	defaultLeaseTime = 15 * time.Second
	// defaultConns is the number of connections of a store's pool, besides one for each
	// store lock, one for leases and one to listen.
	defaultConns = 16
	// defaultConnectTime bounds the time of one try to connect.
	defaultConnectTime = 10 * time.Second
	// maxPartitions bounds the option partitions.
	maxPartitions = 1024
)

// settings are a parsed DSN.
type settings struct {
	config     *pgxpool.Config
	schema     string
	partitions int // 0: the table of events has no partitions
	// assumeSynced accepts a server that runs with fsync=off for writing.
	assumeSynced bool
}

// errDSN begins the errors of a malformed DSN. The driver's own error may quote a piece
// of the password.
var errDSN = errors.New("malformed DSN: write postgres://USER@HOST:PORT/DATABASE, with special characters as %XX")

// parse parses a DSN. Options of the driver and of the server stay in the settings of
// the pool.
func parse(dsn string, readOnly bool) (settings, error) {
	if strings.Contains(dsn, "://") {
		if u, err := url.Parse(dsn); err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
			return settings{}, errDSN
		}
	}
	pool, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return settings{}, parseError(err)
	}
	s := settings{config: pool, schema: defaultSchema}
	conn := pool.ConnConfig
	if err := s.takeOptions(conn.RuntimeParams); err != nil {
		return settings{}, err
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		pool.MaxConns = defaultConns
	}
	conn.RuntimeParams["search_path"] = pgx.Identifier{s.schema}.Sanitize() + ", pg_temp"
	conn.RuntimeParams["default_transaction_isolation"] = "read committed"
	if _, named := conn.RuntimeParams["application_name"]; !named {
		conn.RuntimeParams["application_name"] = "convlog"
	}
	conn.OnNotice = noteWarning
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = defaultConnectTime
	}
	if readOnly {
		conn.RuntimeParams["default_transaction_read_only"] = "on"
	} else if len(s.hosts()) > 1 && conn.ValidateConnect == nil {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite // follow the primary
	}
	return s, nil
}

// Public returns a DSN as a URL without passwords, for messages. It has the user, the
// hosts, the database and the schema. A malformed DSN is an error, as of New.
func Public(dsn string) (string, error) {
	s, err := parse(dsn, true)
	if err != nil {
		return "", err
	}
	conn := s.config.ConnConfig
	u := url.URL{Scheme: "postgres", User: url.User(conn.User), Host: strings.Join(s.hosts(), ","), Path: "/" + conn.Database}
	if s.schema != defaultSchema {
		u.RawQuery = url.Values{"schema": {s.schema}}.Encode()
	}
	return u.String(), nil
}

// hosts are the servers of the DSN.
func (s *settings) hosts() []string {
	conn := s.config.ConnConfig
	hosts := []string{hostOf(conn.Host, conn.Port)}
	for _, f := range conn.Fallbacks {
		if host := hostOf(f.Host, f.Port); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func hostOf(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// takeOptions removes the options of this package from the parameters of a connection.
func (s *settings) takeOptions(params map[string]string) error {
	if schema, ok := params["schema"]; ok {
		delete(params, "schema")
		if err := checkSchema(schema); err != nil {
			return fmt.Errorf("DSN: %w", err)
		}
		s.schema = schema
	}
	if text, ok := params["partitions"]; ok {
		delete(params, "partitions")
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPartitions {
			return fmt.Errorf("DSN: partitions=%q: want a number from 1 to %d", text, maxPartitions)
		}
		s.partitions = n
	}
	if text, ok := params["assume_synced"]; ok {
		delete(params, "assume_synced")
		var err error
		if s.assumeSynced, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("DSN: assume_synced=%q: want true or false", text)
		}
	}
	return nil
}

// checkSchema checks the name of a schema. PostgreSQL truncates longer names.
func checkSchema(schema string) error {
	if schema == "" || len(schema) > 63 || strings.HasPrefix(schema, "pg_") || strings.ContainsRune(schema, 0) {
		return fmt.Errorf("schema=%q: a schema has 1 to 63 bytes and does not begin with pg_", schema)
	}
	return nil
}

// parseError is the driver's error without the DSN.
func parseError(err error) error {
	var parsing *pgconn.ParseConfigError
	if !errors.As(err, &parsing) {
		return fmt.Errorf("DSN: %w", err)
	}
	cause := errors.Unwrap(parsing)
	var malformed *url.Error
	if cause == nil || errors.As(cause, &malformed) {
		return errDSN
	}
	return fmt.Errorf("DSN: %w", cause)
}
