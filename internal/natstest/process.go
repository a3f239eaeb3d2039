package natstest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// program returns the file of the program natsserver. The go command builds it once, and keeps
// it in its cache.
var program = sync.OnceValues(func() (string, error) {
	folder, err := programFolder()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "tool", "-n", "natsserver")
	// The server is built for this machine, also for tests of another platform: its clusters do
	// not start on linux/386.
	environ := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOARCH=") || strings.HasPrefix(v, "GOOS=") })
	cmd.Dir, cmd.Env = folder, append(environ, "GOWORK=off") // it is in no workspace
	file, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return "", fmt.Errorf("build the module in %s: %w", folder, err)
	}
	return string(bytes.TrimSpace(file)), nil
})

// programFolder returns the folder of the module natsserver. Tests run in a folder of the
// repository.
func programFolder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		folder := filepath.Join(at, "internal", "natstest", "natsserver")
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a clone of the repository, which has the module internal/natstest/natsserver", dir)
		}
	}
}

func (n *Node) logFile() string { return n.folder() + ".log" }

// launch starts the process of the node.
func (n *Node) launch() error {
	file, err := program()
	if err != nil {
		return err
	}
	log, err := os.Create(n.logFile())
	if err != nil {
		return err
	}
	defer log.Close() // the node has a copy
	cmd := exec.Command(file, n.config())
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
