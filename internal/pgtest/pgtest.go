// Package pgtest gives tests a PostgreSQL server: the one of a DSN in the environment, or
// a private one that the first test of a process starts.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Variable is the environment variable with the DSN of a server for tests, as a URL. The
// tests create schemas in its database and drop them. With the value Required, which CI
// sets, a test fails if there is no PostgreSQL; otherwise it is skipped.
const (
	Variable = "CONVLOG_TEST_POSTGRES"
	Required = "required"
)

// errNoServer names the remedies of a machine without PostgreSQL.
var errNoServer = errors.New("no PostgreSQL: install it (on Debian: apt-get install postgresql), or put its initdb in PATH, or set " +
	Variable + " to the DSN of a server")

// private is the server of this process.
var private = sync.OnceValues(func() (*Server, error) { return New(Unsynced...) })

// DSN returns the DSN of a new schema, without tables, in the server of this process.
// The private server keeps the schema until it ends; another server drops it at the end of the
// test.
func DSN(t testing.TB) string {
	t.Helper()
	base, schema := os.Getenv(Variable), "test_"+randomName()
	if base == "" || base == Required {
		server, err := private()
		Need(t, err)
		base = server.DSN()
	} else {
		t.Cleanup(func() {
			if err := Exec(base, "DROP SCHEMA IF EXISTS "+schema+" CASCADE"); err != nil {
				t.Errorf("drop the schema of the test: %v", err)
			}
		})
	}
	dsn, err := With(base, "schema", schema)
	if err == nil {
		dsn, err = With(dsn, "assume_synced", "true") // the private server runs with fsync=off
	}
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// Need ends the test if a server could not be started. A machine without PostgreSQL
// skips the test, unless the environment requires it.
func Need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errNoServer) && os.Getenv(Variable) != Required {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// With returns the DSN with one more option.
func With(dsn, name, value string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("%s is not a URL", Variable)
	}
	options := u.Query()
	options.Set(name, value)
	u.RawQuery = options.Encode()
	return u.String(), nil
}

// Split returns the DSN of the server without the options of package postgres, and the
// schema.
func Split(dsn string) (server, schema string, err error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", "", err
	}
	options := u.Query()
	schema = options.Get("schema")
	options.Del("schema")
	options.Del("assume_synced")
	u.RawQuery = options.Encode()
	return u.String(), schema, nil
}

// Exec runs statements on a connection of its own. The DSN has no options of package
// postgres.
func Exec(dsn, statements string, args ...any) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statements, args...)
	return err
}

// Number returns the number that a query yields.
func Number(dsn, query string) (n int64, err error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, query).Scan(&n)
	return n, err
}

func randomName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
