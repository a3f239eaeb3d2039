// Natsserver is a NATS server for tests:
//
//	natsserver FILE
//
// FILE has its configuration. The server ends when its standard input is closed, and so does
// not outlive the test that started it. SIGQUIT writes the stacks of its goroutines.
//
// It is a module of its own: programs that use the log do not require the server.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: natsserver FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "natsserver: configuration %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// run runs a server until the standard input is closed.
func run(config string) error {
	opts, err := server.ProcessConfigFile(config)
	if err != nil {
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
