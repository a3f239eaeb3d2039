package term

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
)

// Pager is a program that shows output page by page. Write the output to it.
type Pager struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Writer // the terminal
}

// OpenPager starts the pager that the environment names; nil for none. out is a terminal.
// $PAGER names the pager; the default is less, and cat is no pager. With -F, less exits if
// the output fits on the screen.
func OpenPager(out, errs io.Writer, getenv func(string) string) (*Pager, error) {
	if name := getenv("TERM"); name == "" || name == "dumb" {
		return nil, nil
	}
	name := getenv("PAGER")
	if name == "" {
		name = "less"
		if _, err := exec.LookPath(name); err != nil {
			return nil, nil
		}
	}
	if name == "cat" || runtime.GOOS == "windows" {
		return nil, nil
	}
	p := &Pager{cmd: exec.Command("sh", "-c", name), out: out}
	p.cmd.Stdout, p.cmd.Stderr = out, errs
	p.cmd.Env = append(os.Environ(), "LESS="+cmp.Or(getenv("LESS"), "FRX"))
	var err error
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start pager %s: %w", name, err)
	}
	return p, nil
}

// Write implements io.Writer.
func (p *Pager) Write(text []byte) (int, error) { return p.in.Write(text) }

// Terminal is the terminal that the pager writes to.
func (p *Pager) Terminal() io.Writer { return p.out }

// Close waits until the pager ends. err is the error of the command, which Close returns. It
// is no error if the user quits early.
func (p *Pager) Close(err error) error {
	if PipeClosed(err) {
		err = nil
	}
	closed := p.in.Close()
	if waited := p.cmd.Wait(); waited != nil {
		closed = fmt.Errorf("pager: %w; set PAGER to a program that exists, or to cat for none", waited)
	}
	if err == nil {
		err = closed
	}
	return err
}
