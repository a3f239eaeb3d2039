package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
)

// paged are the commands whose output is long, and read from its start.
var paged = map[string]bool{
	"diff": true, "history": true, "optree": true, "runlog": true, "search": true, "show": true, "tree": true,
}

// pager is the program that shows output page by page.
type pager struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// page lets the pager print what cmd writes, if it is one of those and a person
// is looking. $PAGER names the pager, less by default; none if it is
// cat. What fits on the screen less only prints.
func (a *app) page(cmd *cobra.Command) error {
	if !paged[cmd.Name()] || a.json || !isTerminal(a.out) {
		return nil
	}
	if term := a.getenv("TERM"); term == "" || term == "dumb" {
		return nil
	}
	name := a.getenv("PAGER")
	if name == "" {
		name = "less"
		if _, err := exec.LookPath(name); err != nil {
			return nil
		}
	}
	if name == "cat" || runtime.GOOS == "windows" {
		return nil
	}
	return a.startPager(name)
}

func (a *app) startPager(name string) error {
	p := &pager{cmd: exec.Command("sh", "-c", name)}
	p.cmd.Stdout, p.cmd.Stderr = a.out, a.err
	p.cmd.Env = append(os.Environ(), "LESS="+cmp.Or(a.getenv("LESS"), "FRX"))
	var err error
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start pager %s: %w", name, err)
	}
	a.pager, a.out = p, p.in
	return nil
}

// closePager waits until the pager has shown everything, or its user has seen
// enough, which is no error.
func (a *app) closePager(err error) error {
	if a.pager == nil {
		return err
	}
	if errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	closed := a.pager.in.Close()
	if waited := a.pager.cmd.Wait(); waited != nil {
		closed = fmt.Errorf("pager: %w; set PAGER to a program that is there, or to cat for none", waited)
	}
	if err == nil {
		err = closed
	}
	return err
}
