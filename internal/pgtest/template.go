package pgtest

import (
	"os/exec"
	"sync"
)

// template is a server that is never started. The clusters of all servers of this process are
// copies of its cluster: a copy takes milliseconds, and initdb takes a second.
var template = sync.OnceValues(func() (*Server, error) {
	initdb, err := find("initdb")
	if err != nil {
		return nil, err
	}
	s := new(Server)
	if err := s.newFolder(); err != nil {
		return nil, err
	}
	if err := s.removeAtEnd(); err != nil {
		return nil, err
	}
	return s, s.run(initdb, "--pgdata", s.folder+"/data", "--username=postgres", "--auth=trust", "--no-sync", "--encoding=SQL_ASCII", "--locale=C")
})

// removeAtEnd starts a process that removes the folder when its input ends, which is when this
// process ends.
func (s *Server) removeAtEnd() (err error) {
	remover := exec.Command("/bin/sh", "-c", `read -r line; rm -rf "$1"`, "sh", s.folder)
	remover.SysProcAttr = attributes(nil, true)
	if s.alive, err = remover.StdinPipe(); err != nil {
		return err
	}
	return remover.Start()
}
