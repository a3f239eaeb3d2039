package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/convlog/convlog/internal/testsize"
)

// A worker is a process that runs one logtool command after another. The scripts of the usual
// and the short form share workers, because a process of the test binary needs 20 ms before its
// first command. The long form starts a process per command.
type worker struct {
	zone    string // TZ: a process reads it once
	cmd     *exec.Cmd
	in      io.WriteCloser
	calls   *json.Encoder
	answers *json.Decoder
}

type workerCall struct {
	Dir     string
	Environ []string
	Args    []string
}

type workerAnswer struct {
	Out, Err []byte
	Code     int
}

// serveCommands is the program logtool-worker.
func serveCommands() {
	calls, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var call workerCall
		if err := calls.Decode(&call); err != nil {
			return
		}
		var out, said bytes.Buffer
		if err := os.Chdir(call.Dir); err != nil {
			panic(err)
		}
		os.Clearenv()
		for _, variable := range append(call.Environ, "PWD="+call.Dir) {
			name, value, _ := strings.Cut(variable, "=")
			os.Setenv(name, value)
		}
		a := &app{in: strings.NewReader(""), out: &out, err: &said, getenv: os.Getenv, now: time.Now}
		code := a.run(context.Background(), call.Args)
		if err := answers.Encode(workerAnswer{out.Bytes(), said.Bytes(), code}); err != nil {
			panic(err)
		}
	}
}

func startWorker(zone string, environ []string) (*worker, error) {
	program, err := exec.LookPath("logtool-worker")
	if err != nil {
		return nil, err
	}
	w := &worker{zone: zone, cmd: exec.Command(program)}
	w.cmd.Env, w.cmd.Stderr = environ, os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.calls, w.answers = json.NewEncoder(w.in), json.NewDecoder(out)
	return w, w.cmd.Start()
}

// stop ends a worker, and waits for it.
func (w *worker) stop() error {
	_ = w.in.Close() // the worker ends at the end of its input
	return w.cmd.Wait()
}

// workers are the workers that run no command.
type workers struct {
	mu   sync.Mutex
	idle []*worker
}

// take returns a worker for a time zone.
func (ws *workers) take(zone string, environ []string) (*worker, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i, w := range ws.idle {
		if w.zone == zone {
			ws.idle = slices.Delete(ws.idle, i, i+1)
			return w, nil
		}
	}
	return startWorker(zone, environ)
}

func (ws *workers) put(w *worker) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.idle = append(ws.idle, w)
}

func (ws *workers) stop() {
	for _, w := range ws.idle {
		_ = w.stop() // all its answers came
	}
}

// scriptEnv has the names of the environment variables of a script, and the workers.
type scriptEnv struct {
	names []string
	*workers
}

type scriptEnvKey struct{}

// call runs a logtool command in the worker of a script, with the output of the script.
func call(ts *testscript.TestScript, args []string) workerAnswer {
	answer := ask(ts, args)
	_, _ = ts.Stdout().Write(answer.Out)
	_, _ = ts.Stderr().Write(answer.Err)
	return answer
}

// ask runs a logtool command in a worker, with the environment of the script.
func ask(ts *testscript.TestScript, args []string) workerAnswer {
	script := ts.Value(scriptEnvKey{}).(*scriptEnv)
	var environ []string
	for _, name := range script.names {
		environ = append(environ, name+"="+ts.Getenv(name))
	}
	w, err := script.take(ts.Getenv("TZ"), environ)
	ts.Check(err)
	ts.Check(w.calls.Encode(workerCall{ts.MkAbs("."), environ, args}))
	var answer workerAnswer
	ts.Check(w.answers.Decode(&answer))
	script.put(w)
	return answer
}

// served ARGS...: run logtool in the worker, like exec logtool.
func served(ts *testscript.TestScript, neg bool, args []string) {
	switch answer := call(ts, args); {
	case answer.Code != 0 && !neg:
		ts.Fatalf("unexpected exit code %d: %s", answer.Code, answer.Err)
	case answer.Code == 0 && neg:
		ts.Fatalf("unexpected command success")
	}
}

// servedCode N ARGS...: code in the worker.
func servedCode(ts *testscript.TestScript, args []string) {
	answer := call(ts, args[1:])
	checkCode(ts, args[0], answer.Code, string(answer.Err))
}

var (
	scriptCommand = regexp.MustCompile(`^((?:\[[^\]]*\] *)*)(! *)?(exec|code|stdin|ttyin)\b(.*)$`)
	assignment    = regexp.MustCompile(`(?m)^env ([A-Za-z_]+)=`)
)

// output runs a logtool command, in a worker if the form of the tests has them, and returns its
// output.
func output(ts *testscript.TestScript, args ...string) string {
	if !inWorkers() {
		ts.Check(ts.Exec("logtool", args...))
		return ts.ReadFile("stdout")
	}
	answer := ask(ts, args)
	if answer.Code != 0 {
		ts.Fatalf("logtool %s: exit code %d: %s", strings.Join(args, " "), answer.Code, answer.Err)
	}
	return string(answer.Out)
}

// inWorkers reports whether the scripts run commands in workers.
func inWorkers() bool { return testsize.Of() != testsize.Long && !*update }

// forWorkers copies scripts and returns the copies. In a copy, commands without input run in
// workers. names are the environment variables that the scripts set.
func forWorkers(t *testing.T, files []string) (copies, names []string) {
	t.Helper()
	if !inWorkers() {
		return files, nil
	}
	dir := t.TempDir()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range assignment.FindAllSubmatch(content, -1) {
			names = append(names, string(m[1]))
		}
		to := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(to, []byte(forWorker(string(content))), 0o600); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, to)
	}
	return copies, names
}

// forWorker changes the commands of a script.
func forWorker(script string) string {
	commands, files, hasFiles := strings.Cut(script, "\n-- ")
	lines := strings.Split(commands, "\n")
	input := false // the next command has an input
	for i, line := range lines {
		m := scriptCommand.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		rest, isLogtool := strings.CutPrefix(m[4], " logtool ")
		switch {
		case m[3] == "stdin" || m[3] == "ttyin":
			input = true
			continue
		case input || strings.HasSuffix(line, "&") || strings.HasPrefix(rest, "completion "): // cobra prints a completion to os.Stdout
		case m[3] == "code":
			lines[i] = m[1] + "servedcode" + m[4]
		case isLogtool:
			lines[i] = m[1] + m[2] + "served " + rest
		}
		input = false
	}
	commands = strings.Join(lines, "\n")
	if hasFiles {
		commands += "\n-- " + files
	}
	return commands
}
