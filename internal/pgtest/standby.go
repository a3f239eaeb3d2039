package pgtest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Standby starts a standby of a server, a copy that follows it. It takes connections for
// reading. The server does not wait for it until Synchronous.
func (s *Server) Standby() (*Server, error) {
	backup, err := find("pg_basebackup")
	if err != nil {
		return nil, err
	}
	// After the end of the primary, a promotion may wait for one interval, which is 5 s by default.
	standby := &Server{args: append(slices.Clone(s.args), "-c", "wal_retrieve_retry_interval=100ms")}
	if err := standby.newFolder(); err != nil {
		return nil, err
	}
	if err := standby.run(backup, "--pgdata", standby.folder+"/data", "--dbname", s.DSN(), "--write-recovery-conf", "--checkpoint=fast", "--no-sync"); err != nil {
		return nil, err
	}
	return standby, standby.Run()
}

// Synchronous makes each commit of the server wait for one standby. It returns after a
// standby has connected.
func (s *Server) Synchronous() error {
	if err := s.waitFor("*"); err != nil {
		return err
	}
	return s.until(`SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`)
}

// Asynchronous makes commits of the server wait for no standby. It returns after killed
// standbys have disconnected.
func (s *Server) Asynchronous() error {
	if err := s.waitFor(""); err != nil {
		return err
	}
	return s.until(`SELECT count(*) FROM pg_settings WHERE name = 'synchronous_standby_names' AND setting = ''
		AND NOT EXISTS (SELECT FROM pg_stat_replication)`)
}

// waitFor sets the standbys that commits wait for.
func (s *Server) waitFor(standbys string) error {
	err := Exec(s.DSN(), fmt.Sprintf(`ALTER SYSTEM SET synchronous_standby_names = '%s'`, standbys))
	if err != nil {
		return err
	}
	return Exec(s.DSN(), `SELECT pg_reload_conf()`)
}

// until waits until a query yields a positive number.
func (s *Server) until(query string) error {
	for deadline := time.Now().Add(startTime); ; time.Sleep(10 * time.Millisecond) {
		n, err := Number(s.DSN(), query)
		if err != nil || n > 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %s", startTime, query)
		}
	}
}

// Promote makes a standby the primary.
func (s *Server) Promote() error { return Exec(s.DSN(), `SELECT pg_promote()`) }

// Hosts is the DSN of several servers with one database.
func Hosts(servers ...*Server) string {
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", s.port))
	}
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", strings.Join(hosts, ","))
}
