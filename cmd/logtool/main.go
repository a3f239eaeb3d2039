// Logtool imports, shows, checks, extends and moves logs of AI conversations. See
// `logtool help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
)

func main() { os.Exit(realMain()) }

// realMain returns the exit code. The first interrupt cancels the context, so that the
// command cleans up; a second interrupt kills the process.
func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	term.SetUpConsole()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, now: time.Now, setMemory: setMemory}
	return a.run(ctx, os.Args[1:])
}
