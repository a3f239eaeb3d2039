package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

// commands are the commands of the scripts, by their usage.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := map[string]func(*testscript.TestScript, bool, []string){"served": served}
	for usage, run := range map[string]func(ts *testscript.TestScript, args []string){
		"code N ARGS...":                  code,
		"servedcode N ARGS...":            servedCode,
		"mask OUT FILE":                   mask,
		"lines N FILE":                    lines,
		"secret OUT FILE":                 secret,
		"forkat STORE SESSION PARENT SEQ": forkAt,
		"forks STORE PARENT N":            forks,
		"flip FILE TEXT":                  flip,
		"json FILE":                       validJSON,
		"await FILE TEXT":                 await,
		"head NAME FILE":                  head,
		"join OUT FILE...":                join,
		"big FILE":                        big,
		"drop FILE TEXT":                  drop,
		"torn FILE":                       torn,
		"page FILE TEXT":                  page,
		"spawn FILE ARGS...":              spawn,
		"interrupt FILE":                  interrupt,
		"agent FILE ARGS...":              agent,
		"crash FILE":                      crash,
		"openid NAME KIND FILE":           openID,
		"orphan STORE TEXT":               orphan,
		"lie STORE SESSION [mark]":        lie,
		"talk STORE SESSION FILE":         talk,
		"hold FILE":                       hold,
		"bytes FILE HEX":                  writeBytes,
		"longline FILE":                   longLine,
		"newer FILE":                      newer,
		"sqlite FILE SQL":                 runSQL,
		"wipe FILE":                       wipe,
		"sql STATEMENTS":                  runServerSQL,
		"views OUT STORE SESSION...":      views,
		"snapshotid NAME FILE":            snapshotID,
	} {
		words := strings.Fields(usage)
		least, most := len(words)-1, len(words)-1
		if last := words[most]; strings.HasPrefix(last, "[") {
			least--
		} else if strings.HasSuffix(last, "...") {
			most = 100
		}
		all[words[0]] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < least || len(args) > most {
				ts.Fatalf("usage: %s", usage)
			}
			run(ts, args)
		}
	}
	return all
}

// writeTo runs f on the log of the store at a path.
func writeTo(ts *testscript.TestScript, path string, f func(*eventlog.Log) error) {
	at, err := parsePlace(ts.MkAbs(path), isFile, isDir)
	ts.Check(err)
	ts.Check(at.with(forWriting, f))
}

// code N ARGS...: logtool exits with N and a one-line error.
func code(ts *testscript.TestScript, args []string) {
	err := ts.Exec("logtool", args[1:]...)
	got := 0
	if err != nil {
		got = exitStatus(ts, err)
	}
	checkCode(ts, args[0], got, ts.ReadFile("stderr"))
}

func checkCode(ts *testscript.TestScript, want string, got int, said string) {
	if strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, want %s", got, want)
	}
	if got != 0 && (!strings.HasPrefix(said, "logtool: ") || strings.Count(said, "\n") != 1) {
		ts.Fatalf("not one line of explanation: %q", said)
	}
}

func exitStatus(ts *testscript.TestScript, err error) int {
	coded, ok := err.(interface{ ExitCode() int })
	if !ok {
		ts.Fatalf("run logtool: %v", err)
	}
	return coded.ExitCode()
}

var (
	hashes = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	shorts = regexp.MustCompile(`\b([0-9]+):[0-9a-f]{12}\b`)
	ulids  = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`)
	times  = regexp.MustCompile(`\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+Z)?`)
)

// mask OUT FILE: copy a file (or stdout, stderr), and replace the parts that differ
// between runs: hashes, ids and times.
func mask(ts *testscript.TestScript, args []string) {
	text := ts.ReadFile(args[1])
	text = hashes.ReplaceAllString(text, "HASH")
	text = shorts.ReplaceAllString(text, "$1:HASH")
	text = ulids.ReplaceAllString(text, "ULID")
	text = times.ReplaceAllString(text, "TIME")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// lines N FILE: the file has N lines.
func lines(ts *testscript.TestScript, args []string) {
	if got := strings.Count(ts.ReadFile(args[1]), "\n"); strconv.Itoa(got) != args[0] {
		ts.Fatalf("%d lines, want %s", got, args[0])
	}
}

// flip FILE TEXT: change one bit of the first byte of TEXT in FILE.
func flip(ts *testscript.TestScript, args []string) {
	path := ts.MkAbs(args[0])
	content, err := os.ReadFile(path)
	ts.Check(err)
	at := bytes.Index(content, []byte(args[1]))
	if at < 0 {
		ts.Fatalf("%s does not contain %q", args[0], args[1])
	}
	content[at] ^= 1
	ts.Check(os.WriteFile(path, content, 0o600))
}

// json FILE: each line of the file is one JSON value.
func validJSON(ts *testscript.TestScript, args []string) {
	text := strings.TrimSuffix(ts.ReadFile(args[0]), "\n")
	for i, line := range strings.Split(text, "\n") {
		if !jsontext.Value(line).IsValid() {
			ts.Fatalf("line %d is not JSON: %s", i+1, line)
		}
	}
}

// await FILE TEXT: wait until the file contains TEXT.
func await(ts *testscript.TestScript, args []string) {
	path := ts.MkAbs(args[0])
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), args[1]) {
			return
		}
	}
	ts.Fatalf("%s never contained %q", args[0], args[1])
}

// head NAME FILE: set $NAME to the SEQ:HASH at the end of append's output in FILE, and
// $NAME_SHORT to the same head with a short hash.
func head(ts *testscript.TestScript, args []string) {
	words := strings.Fields(ts.ReadFile(args[1]))
	if len(words) != 2 || !strings.Contains(words[1], ":") {
		ts.Fatalf("not what append prints: %s", fmt.Sprint(words))
	}
	ts.Setenv(args[0], words[1])
	ts.Setenv(args[0]+"_SHORT", words[1][:strings.Index(words[1], ":")+13])
}

// join OUT FILE...: write the files one after the other.
func join(ts *testscript.TestScript, args []string) {
	var text strings.Builder
	for _, file := range args[1:] {
		text.WriteString(ts.ReadFile(file))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text.String()), 0o600))
}

// madeUpToken has the form of a token of GitHub. It is in two parts, so that other
// scanners do not report this file.
const madeUpToken = "gh" + "p_zZ9yX8wW7vU6tT5sR4qP3oN2mL1kJ0iH9gF8"

// secret OUT FILE: copy a file, with a made-up token in the place of TOKEN.
func secret(ts *testscript.TestScript, args []string) {
	text := strings.ReplaceAll(ts.ReadFile(args[1]), "TOKEN", madeUpToken)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// big FILE: write a text that is too long for a line of a log.
func big(ts *testscript.TestScript, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat("a line that is one of many\n", 20_000)), 0o600))
}

// drop FILE TEXT: remove the line that contains TEXT.
func drop(ts *testscript.TestScript, args []string) {
	var kept []string
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if !strings.Contains(line, args[1]) {
			kept = append(kept, line)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(kept, "")), 0o600))
}

// page FILE TEXT: overwrite the page of a database that contains TEXT.
func page(ts *testscript.TestScript, args []string) {
	path := ts.MkAbs(args[0])
	content, err := os.ReadFile(path)
	ts.Check(err)
	const size = 4096
	at := bytes.Index(content, []byte(args[1])) / size * size
	if at <= 0 {
		ts.Fatalf("%s does not contain %q", args[0], args[1])
	}
	copy(content[at:at+size], bytes.Repeat([]byte{0xa5}, size))
	ts.Check(os.WriteFile(path, content, 0o600))
}

// talk STORE SESSION FILE: append the events of FILE, one append per event.
func talk(ts *testscript.TestScript, args []string) {
	events, err := readEvents(strings.NewReader(ts.ReadFile(args[2])))
	ts.Check(err)
	writeTo(ts, args[0], func(log *eventlog.Log) error {
		for _, e := range events {
			if _, err := log.Append(context.Background(), args[1], eventlog.Any(), e); err != nil {
				return err
			}
		}
		return nil
	})
}

// forkat STORE SESSION PARENT SEQ: begin a session as a fork of another.
func forkAt(ts *testscript.TestScript, args []string) {
	seq, err := strconv.ParseInt(args[3], 10, 64)
	ts.Check(err)
	writeTo(ts, args[0], func(log *eventlog.Log) error {
		point, err := log.Event(context.Background(), args[2], seq)
		if err != nil {
			return err
		}
		fork := event.Fork{Parent: args[2], Seq: seq, EventID: point.ID, Hash: point.Hash()}
		e := event.New(fork)
		_, err = log.Append(context.Background(), args[1], eventlog.New(), e)
		return err
	})
}

// forks STORE PARENT N: fork a session N times, as f01, f02 and so on.
func forks(ts *testscript.TestScript, args []string) {
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	writeTo(ts, args[0], func(log *eventlog.Log) error {
		for i := range n {
			if _, err := fork.At(context.Background(), log, args[1], fork.Head(), fork.Options{ID: fmt.Sprintf("f%02d", i+1)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// orphan STORE TEXT: put a blob without an event, like a program that is killed before the
// append.
func orphan(ts *testscript.TestScript, args []string) {
	writeTo(ts, args[0], func(log *eventlog.Log) error {
		_, err := log.PutBlob(context.Background(), strings.NewReader(args[1]))
		return err
	})
}

// lie STORE SESSION [mark]: append a false snapshot: an empty transcript, or a mark with a
// wrong digest.
func lie(ts *testscript.TestScript, args []string) {
	writeTo(ts, args[0], func(log *eventlog.Log) error {
		ctx := context.Background()
		head, err := log.Head(ctx, args[1])
		if err != nil {
			return err
		}
		s := event.Snapshot{Projection: "transcript", Version: 1, SnapshotID: "made-up", Seq: head.Seq, Hash: head.Hash}
		if len(args) > 2 {
			s.StateDigest = event.DigestOf([]byte("a state that never was"))
		} else {
			s.State = []byte(`{"transcript":{"version":1,"state":{"items":[]}}}`)
		}
		e := event.New(s)
		_, err = log.Append(ctx, args[1], eventlog.At(head), e)
		return err
	})
}

// views OUT STORE SESSION...: write the output of each command that shows sessions.
func views(ts *testscript.TestScript, args []string) {
	var text strings.Builder
	look := func(command ...string) {
		text.WriteString("-- " + strings.Join(command, " ") + "\n" + output(ts, append([]string{"--store", args[1]}, command...)...))
	}
	look("tree", "--long", "--json")
	look("cost", "--json")
	for _, session := range args[2:] {
		look("show", session, "--json")
		look("show", session, "--path", "active", "--full")
		look("history", session)
		look("history", session, "--format", "anthropic")
		look("cost", session, "--turns")
		look("state", "show", session, "--json")
		look("state", "list", session, "--orphaned")
		look("runlog", "--tree", session, "--json")
		look("runlog", session, "--orphaned", "--json")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text.String()), 0o600))
}

// snapshotid NAME FILE: set $NAME to the id of a snapshot in what snapshot printed.
func snapshotID(ts *testscript.TestScript, args []string) {
	id := uuids.FindString(ts.ReadFile(args[1]))
	if id == "" {
		ts.Fatalf("no snapshot in %q", ts.ReadFile(args[1]))
	}
	ts.Setenv(args[0], id)
}

var uuids = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// spawnedCommands are the background processes of a script, by output file.
type spawnedCommands map[string]*exec.Cmd

type spawnedKey struct{}

// spawn FILE ARGS...: run logtool in the background, its output in FILE.
func spawn(ts *testscript.TestScript, args []string) { background(ts, "logtool", args) }

// agent FILE ARGS...: run logtool-agent in the background, its output in FILE.
func agent(ts *testscript.TestScript, args []string) { background(ts, "logtool-agent", args) }

func background(ts *testscript.TestScript, name string, args []string) {
	program, err := exec.LookPath(name)
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

// crash FILE: kill a background process.
func crash(ts *testscript.TestScript, args []string) {
	cmd := ts.Value(spawnedKey{}).(spawnedCommands)[args[0]]
	if cmd == nil {
		ts.Fatalf("%s was not spawned", args[0])
	}
	ts.Check(cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
}

// openid NAME KIND FILE: set $NAME to the id of the first open work of a kind in what
// runs --json printed.
func openID(ts *testscript.TestScript, args []string) {
	m := regexp.MustCompile(`"kind":"` + args[1] + `","id":"([^"]+)"`).FindStringSubmatch(ts.ReadFile(args[2]))
	if m == nil {
		ts.Fatalf("no open %s in %s", args[1], ts.ReadFile(args[2]))
	}
	ts.Setenv(args[0], m[1])
}

// interrupt FILE: interrupt a spawned logtool, like Ctrl-C. It must end with exit
// code 0.
func interrupt(ts *testscript.TestScript, args []string) {
	cmd := ts.Value(spawnedKey{}).(spawnedCommands)[args[0]]
	if cmd == nil {
		ts.Fatalf("%s was not spawned", args[0])
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	ts.Check(cmd.Wait())
}

// bytes FILE HEX: write a binary file.
func writeBytes(ts *testscript.TestScript, args []string) {
	content, err := hex.DecodeString(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o600))
}

// longline FILE: write a transcript whose only line has 400 KB.
func longLine(ts *testscript.TestScript, args []string) {
	line := strings.TrimSpace(ts.ReadFile("good.jsonl"))
	line = strings.Replace(line, "Why does", strings.Repeat("why ", 100<<10)+"does", 1)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(line+"\n"), 0o600))
}
