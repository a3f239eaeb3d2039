package main

import (
	"os"
	"os/exec"

	"github.com/rogpeppe/go-internal/testscript"
)

// spawned are the logtools that a script has running in the background, by the
// file of their output.
type spawnedCommands map[string]*exec.Cmd

type spawnedKey struct{}

// spawn FILE ARGS...: run logtool in the background, its output in FILE.
func spawn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: spawn FILE ARGS...")
	}
	program, err := exec.LookPath("logtool")
	ts.Check(err)
	out, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	cmd := exec.Command(program, args[1:]...)
	cmd.Dir, cmd.Stdout = ts.MkAbs("."), out
	ts.Check(cmd.Start())
	ts.Check(out.Close())
	ts.Defer(func() { _ = cmd.Process.Kill() })
	ts.Value(spawnedKey{}).(spawnedCommands)[args[0]] = cmd
}

// interrupt FILE: interrupt what spawn began, as Ctrl-C does; it must end with
// exit code 0.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: interrupt FILE")
	}
	cmd := ts.Value(spawnedKey{}).(spawnedCommands)[args[0]]
	if cmd == nil {
		ts.Fatalf("%s was not spawned", args[0])
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	ts.Check(cmd.Wait())
}
