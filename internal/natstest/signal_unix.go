//go:build unix

package natstest

import (
	"fmt"
	"syscall"
)

// ownGroup puts a node into a process group of its own: the kernel ends a stopped process
// whose group has lost its parent.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Pause stops the process of a node with SIGSTOP, so that its connections stay open. It
// returns when all threads have stopped: a busy thread may stop late.
func (n *Node) Pause() error {
	pid, err := n.signal(syscall.SIGSTOP)
	if err != nil {
		return err
	}
	var status syscall.WaitStatus
	_, err = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
	if err == nil && !status.Stopped() {
		err = fmt.Errorf("node %s has ended", n.Name)
	}
	return err
}

// Continue continues the process of a node after Pause.
func (n *Node) Continue() error {
	_, err := n.signal(syscall.SIGCONT)
	return err
}

// quit makes a node write the stacks of its goroutines to its log, and end.
func (n *Node) quit() error {
	_, err := n.signal(syscall.SIGQUIT)
	return err
}

// signal sends a signal to the process of the node.
func (n *Node) signal(s syscall.Signal) (pid int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return 0, fmt.Errorf("node %s does not run", n.Name)
	}
	return n.process.Process.Pid, n.process.Process.Signal(s)
}
