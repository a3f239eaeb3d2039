package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

var update = flag.Bool("update", false, "rewrite the golden files of the scripts in testdata/script")

func TestMain(m *testing.M) {
	// With -race a process sleeps a second before it exits, and the scripts run
	// a hundred of them.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=10"))
	testscript.Main(m, map[string]func(){"logtool": main})
}

// TestScripts runs the scripts of testdata/script, each the story of something
// a user does. -update rewrites the files they compare output with.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Values[spawnedKey{}] = spawnedCommands{}
			return nil
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":       code,
			"mask":       mask,
			"lines":      lines,
			"forkat":     forkAt,
			"forks":      forks,
			"flip":       flip,
			"json":       validJSON,
			"await":      await,
			"head":       head,
			"join":       join,
			"big":        big,
			"drop":       drop,
			"torn":       torn,
			"page":       page,
			"spawn":      spawn,
			"interrupt":  interrupt,
			"orphan":     orphan,
			"lie":        lie,
			"talk":       talk,
			"hold":       hold,
			"bytes":      writeBytes,
			"longline":   longLine,
			"newer":      newer,
			"views":      views,
			"snapshotid": snapshotID,
		},
	})
}

// condition knows [root]: the test runs as the user whom no permission stops.
func condition(name string) (bool, error) {
	if name != "root" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	return os.Geteuid() == 0, nil
}

// code N ARGS...: logtool exits with N, and says why in one line.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N ARGS...")
	}
	err := ts.Exec("logtool", args[1:]...)
	got := 0
	if err != nil {
		got = exitStatus(ts, err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
	if said := ts.ReadFile("stderr"); got != 0 && (!strings.HasPrefix(said, "logtool: ") || strings.Count(said, "\n") != 1) {
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

// mask OUT FILE: copy a file (or stdout, stderr) with what differs between
// runs replaced: hashes, ids, and times of this century's events.
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mask OUT FILE")
	}
	text := ts.ReadFile(args[1])
	text = hashes.ReplaceAllString(text, "HASH")
	text = shorts.ReplaceAllString(text, "$1:HASH")
	text = ulids.ReplaceAllString(text, "ULID")
	text = times.ReplaceAllString(text, "TIME")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// lines N FILE: the file has N lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines N FILE")
	}
	if got := strings.Count(ts.ReadFile(args[1]), "\n"); strconv.Itoa(got) != args[0] {
		ts.Fatalf("%d lines, want %s", got, args[0])
	}
}

// flip FILE TEXT: change one bit of the first byte of TEXT in FILE.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE TEXT")
	}
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
func validJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: json FILE")
	}
	text := strings.TrimSuffix(ts.ReadFile(args[0]), "\n")
	for i, line := range strings.Split(text, "\n") {
		if !jsontext.Value(line).IsValid() {
			ts.Fatalf("line %d is not JSON: %s", i+1, line)
		}
	}
}

// await FILE TEXT: wait until the file contains TEXT.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE TEXT")
	}
	path := ts.MkAbs(args[0])
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), args[1]) {
			return
		}
	}
	ts.Fatalf("%s never contained %q", args[0], args[1])
}

// head NAME FILE: set $NAME to the SEQ:HASH at the end of what append printed,
// and $NAME_SHORT to the same with a shortened hash.
func head(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: head NAME FILE")
	}
	words := strings.Fields(ts.ReadFile(args[1]))
	if len(words) != 2 || !strings.Contains(words[1], ":") {
		ts.Fatalf("not what append prints: %s", fmt.Sprint(words))
	}
	ts.Setenv(args[0], words[1])
	ts.Setenv(args[0]+"_SHORT", words[1][:strings.Index(words[1], ":")+13])
}

// join OUT FILE...: write the files one after the other.
func join(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: join OUT FILE...")
	}
	var text strings.Builder
	for _, file := range args[1:] {
		text.WriteString(ts.ReadFile(file))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text.String()), 0o600))
}

// big FILE: write a text that is too long to be kept in a line.
func big(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: big FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat("a line that is one of many\n", 20_000)), 0o600))
}

// drop FILE TEXT: remove the line that contains TEXT.
func drop(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: drop FILE TEXT")
	}
	var kept []string
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if !strings.Contains(line, args[1]) {
			kept = append(kept, line)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(kept, "")), 0o600))
}

// torn FILE: append the first bytes of a line, as a writer leaves them that is
// killed.
func torn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: torn FILE")
	}
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY|os.O_APPEND, 0)
	ts.Check(err)
	_, err = f.WriteString(`{"crc":"`)
	ts.Check(err)
	ts.Check(f.Close())
}

// page FILE TEXT: overwrite the page of a database that holds TEXT.
func page(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: page FILE TEXT")
	}
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

// talk STORE SESSION FILE: append the events of FILE, each by itself.
func talk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: talk STORE SESSION FILE")
	}
	at, err := parsePlace(ts.MkAbs(args[0]), isFile, isDir)
	ts.Check(err)
	events, err := readEvents(strings.NewReader(ts.ReadFile(args[2])))
	ts.Check(err)
	ts.Check(at.with(forWriting, func(log *eventlog.Log) error {
		for _, e := range events {
			if _, err := log.Append(context.Background(), args[1], eventlog.Any(), e); err != nil {
				return err
			}
		}
		return nil
	}))
}

// forkat STORE SESSION PARENT SEQ: begin a session as a fork of another.
func forkAt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: forkat STORE SESSION PARENT SEQ")
	}
	at, err := parsePlace(ts.MkAbs(args[0]), isFile, isDir)
	ts.Check(err)
	seq, err := strconv.ParseInt(args[3], 10, 64)
	ts.Check(err)
	ts.Check(at.with(forWriting, func(log *eventlog.Log) error {
		point, err := log.Event(context.Background(), args[2], seq)
		if err != nil {
			return err
		}
		fork := event.Fork{Parent: args[2], Seq: seq, EventID: point.ID, Hash: point.Hash()}
		e := event.New(fork)
		_, err = log.Append(context.Background(), args[1], eventlog.New(), e)
		return err
	}))
}

// forks STORE PARENT N: fork a session N times, as f01, f02 and so on.
func forks(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: forks STORE PARENT N")
	}
	at, err := parsePlace(ts.MkAbs(args[0]), isFile, isDir)
	ts.Check(err)
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Check(at.with(forWriting, func(log *eventlog.Log) error {
		for i := range n {
			if _, err := fork.At(context.Background(), log, args[1], fork.Head(), fork.Options{ID: fmt.Sprintf("f%02d", i+1)}); err != nil {
				return err
			}
		}
		return nil
	}))
}
