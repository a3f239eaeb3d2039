package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"
)

// pager is a program that shows output page by page.
type pager struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	terminal io.Writer // that the pager writes to
}

// page sends the output of a paged command to the pager, if the output is a terminal.
// $PAGER names the pager; the default is less, and cat is no pager. With -F, less exits
// if the output fits on the screen.
func (a *app) page(cmd *cobra.Command) error {
	if !a.traitsOf(cmd).paged || a.json || !isTerminal(a.out) {
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
	p := &pager{cmd: exec.Command("sh", "-c", name), terminal: a.out}
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

// closePager waits until the pager ends. It is no error if the user quits early.
func (a *app) closePager(err error) error {
	if a.pager == nil {
		return err
	}
	if pipeClosed(err) {
		err = nil
	}
	closed := a.pager.in.Close()
	if waited := a.pager.cmd.Wait(); waited != nil {
		closed = fmt.Errorf("pager: %w; set PAGER to a program that exists, or to cat for none", waited)
	}
	if err == nil {
		err = closed
	}
	return err
}
