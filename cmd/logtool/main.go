// Logtool imports, looks at, checks, extends and moves logs of AI
// conversations. See `logtool help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(realMain()) }

// realMain is main with its exit code. The first interrupt cancels the context
// and lets the command finish what it holds; a second one kills the process.
func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, now: time.Now}
	return a.run(ctx, os.Args[1:])
}
