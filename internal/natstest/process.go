package natstest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// nodeVariable is the environment variable with the configuration file of a process that
// is a node.
const nodeVariable = "NATSTEST_NODE"

// RunNode runs a node if this process was started as one, and then ends the process.
func RunNode() {
	config := os.Getenv(nodeVariable)
	if config == "" {
		return
	}
	if err := runNode(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runNode runs a node until the process that started it ends, which closes the standard
// input.
func runNode(config string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	opts := new(server.Options)
	if err := opts.ProcessConfigString(string(text)); err != nil {
		return err
	}
	opts.NoSigs = true
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (n *Node) logFile() string { return n.folder() + ".log" }

// launch starts this program again as a node.
func (n *Node) launch() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(n.logFile())
	if err != nil {
		return err
	}
	defer log.Close() // the node has a copy
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), nodeVariable+"="+n.config())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = ownGroup()
	if _, err := cmd.StdinPipe(); err != nil { // it closes when this process ends
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process, n.ended = cmd, ended
	return nil
}

// report forgets a process that has ended by itself, and returns an error with its log.
func (n *Node) report() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process = nil
	log, _ := os.ReadFile(n.logFile())
	return fmt.Errorf("node %s has ended by itself: %s", n.Name, log[max(0, len(log)-2<<10):])
}

// Stacks ends the nodes and returns their logs, which end with the stacks of all goroutines.
func (c *Cluster) Stacks() string {
	var b strings.Builder
	for _, n := range c.Nodes {
		if err := n.quit(); err != nil {
			fmt.Fprintln(&b, err)
			continue
		}
		_ = n.Continue() // a stopped process takes no signal
		<-n.ended
		log, _ := os.ReadFile(n.logFile())
		fmt.Fprintf(&b, "node %s:\n%s\n", n.Name, log)
	}
	return b.String()
}
