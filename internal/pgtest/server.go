package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a private server: a new cluster in a temporary folder that listens on the
// loopback interface. It stops when this process ends, even if the process is killed.
type Server struct {
	folder string
	port   int
	args   []string
	as     *account // nil: the user of this process

	process    *os.Process
	ended      chan struct{} // closed after the end of the process
	supervisor *exec.Cmd
	alive      io.WriteCloser // the input of the supervisor
}

// account is a user and a group of the system.
type account struct{ uid, gid int }

// Unsynced are arguments of a fast server whose data a power loss would damage.
var Unsynced = []string{"-c", "fsync=off", "-c", "full_page_writes=off"}

// Start starts a private server with arguments of postgres, which ends with the test. The short
// form of the tests has no private servers: the test is skipped.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func() (*Server, error) { return New(args...) })
}

// StartStandby starts a standby of a server, which ends with the test.
func StartStandby(t testing.TB, of *Server) *Server {
	t.Helper()
	return forTest(t, of.Standby)
}

func forTest(t testing.TB, start func() (*Server, error)) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("the short form starts no private server")
	}
	s, err := start()
	Need(t, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// New starts a private server with arguments of postgres. The caller stops it.
func New(args ...string) (*Server, error) {
	s := &Server{args: args}
	if err := s.create(); err != nil {
		return nil, err
	}
	return s, s.Run()
}

// DSN is the DSN of the server's database.
func (s *Server) DSN() string {
	return Hosts(s)
}

// create makes the folder, and the cluster as a copy of the template.
func (s *Server) create() error {
	from, err := template()
	if err != nil {
		return err
	}
	if err := s.newFolder(); err != nil {
		return err
	}
	return s.run("cp", "-Rp", from.folder+"/data", s.folder+"/data")
}

// run runs a program as the user of the server.
func (s *Server) run(program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = attributes(s.as, false)
	cmd.Dir = s.folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, out)
	}
	return nil
}

// newFolder makes a folder of the user that runs the server. PostgreSQL refuses to run
// as root.
func (s *Server) newFolder() error {
	parent := os.TempDir()
	if os.Geteuid() == 0 {
		postgres, err := user.Lookup("postgres")
		if err != nil {
			return fmt.Errorf("PostgreSQL does not run as root, and the user postgres is missing: %w", err)
		}
		uid, _ := strconv.Atoi(postgres.Uid)
		gid, _ := strconv.Atoi(postgres.Gid)
		s.as = &account{uid, gid}
		if !openToAll(parent) {
			parent = "/tmp"
		}
	}
	var err error
	if s.folder, err = os.MkdirTemp(parent, "pgtest-"); err == nil && s.as != nil {
		err = os.Chown(s.folder, s.as.uid, s.as.gid)
	}
	return err
}

// openToAll reports whether every user may pass a folder and its parents.
func openToAll(folder string) bool {
	for ; ; folder = filepath.Dir(folder) {
		if info, err := os.Stat(folder); err != nil || info.Mode()&1 == 0 {
			return false
		}
		if folder == filepath.Dir(folder) {
			return true
		}
	}
}

// supervise waits until its input ends, which is when this process ends, and stops the
// server at once. A line of input ends it before.
const supervise = `
read -r line && exit
kill -QUIT "$1" && while kill -0 "$1"; do sleep 0.05; done
rm -rf "$2"
`

// startTime bounds the time until a server takes connections.
const startTime = time.Minute

// Run starts the server of an existing cluster, and waits until it takes connections.
// After Kill it recovers the data.
func (s *Server) Run() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	fresh := s.port == 0
	for {
		if fresh {
			var err error
			if s.port, err = freePort(); err != nil {
				return err
			}
		}
		if err := s.launch(); err != nil {
			return err
		}
		err := s.wait(ctx)
		if err == nil {
			return nil
		}
		// The port may have been taken, or processes of a killed server still end.
		if ctx.Err() != nil {
			log, _ := os.ReadFile(s.folder + "/log")
			return fmt.Errorf("the server of the tests does not start: %w: %s", errors.Join(err, s.Stop()), log)
		}
		if err := s.forget(); err != nil {
			return err
		}
	}
}

// launch starts the server and its supervisor.
func (s *Server) launch() error {
	postgres, err := find("postgres")
	if err != nil {
		return err
	}
	log, err := os.Create(s.folder + "/log")
	if err != nil {
		return err
	}
	defer log.Close() // the server has a copy
	args := append([]string{"-D", s.folder + "/data", "-p", strconv.Itoa(s.port), "-k", s.folder,
		"-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300", "-c", "shared_buffers=64MB"}, s.args...)
	server := exec.Command(postgres, args...)
	server.SysProcAttr = attributes(s.as, true)
	server.Dir, server.Stdout, server.Stderr = s.folder, log, log
	if err := server.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = server.Wait() // reaps the process, so that the supervisor sees its end
		close(ended)
	}()
	s.process, s.ended = server.Process, ended
	supervisor := exec.Command("/bin/sh", "-c", supervise, "sh", strconv.Itoa(server.Process.Pid), s.folder)
	supervisor.SysProcAttr = attributes(nil, true)
	if s.alive, err = supervisor.StdinPipe(); err != nil {
		return err
	}
	if err := supervisor.Start(); err != nil {
		return errors.Join(err, s.process.Kill())
	}
	s.supervisor = supervisor
	return nil
}

var errEnded = errors.New("the server has ended")

// wait waits until the server takes connections.
func (s *Server) wait(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, s.DSN())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.ended:
			return errEnded
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Kill kills the server with SIGKILL. Its processes end when they notice it.
func (s *Server) Kill() error {
	if err := s.process.Kill(); err != nil {
		return err
	}
	<-s.ended
	return s.forget()
}

// Rule puts a rule before the rules of pg_hba.conf, which let every user in.
func (s *Server) Rule(rule string) error {
	path := s.folder + "/data/pg_hba.conf"
	rules, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append([]byte(rule+"\n"), rules...), 0o600)
	}
	if err != nil {
		return err
	}
	return Exec(s.DSN(), `SELECT pg_reload_conf()`)
}

// Statements is the number of statements in the log of a server that was started with
// log_statement=all.
func (s *Server) Statements() (int, error) {
	log, err := os.ReadFile(s.folder + "/log")
	return bytes.Count(log, []byte("LOG:  statement: ")) + bytes.Count(log, []byte("LOG:  execute ")), err
}

// forget ends the supervisor of a server that has ended.
func (s *Server) forget() error {
	_, err := s.alive.Write([]byte("\n"))
	err = errors.Join(err, s.alive.Close(), s.supervisor.Wait())
	s.supervisor = nil
	return err
}

// Stop stops the server, if it runs, and removes its data.
func (s *Server) Stop() error {
	if s.supervisor == nil {
		return os.RemoveAll(s.folder)
	}
	return errors.Join(s.alive.Close(), s.supervisor.Wait())
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// find returns the path of a program of PostgreSQL: the newest of Debian's folders, or in
// PATH.
func find(program string) (string, error) {
	debian, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if err != nil {
		return "", err
	}
	if len(debian) > 0 {
		return slices.MaxFunc(debian, func(a, b string) int { return versionOf(a) - versionOf(b) }), nil
	}
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	return "", errNoServer
}

// versionOf is the version in a path of Debian.
func versionOf(path string) int {
	n, _ := strconv.Atoi(strings.Split(path, "/")[4])
	return n
}
