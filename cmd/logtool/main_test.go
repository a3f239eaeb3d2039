package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/testsize"
)

var update = flag.Bool("update", false, "rewrite the golden files of the scripts in testdata/script")

func TestMain(m *testing.M) {
	// With -race a process sleeps a second before it exits, and the scripts run
	// a hundred of them.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=10"))
	testscript.Main(m, map[string]func(){"logtool": main, "logtool-peak": printPeak, "logtool-agent": runAgent, "logtool-worker": serveCommands})
}

// TestScripts runs the scripts of testdata/script, each about one task of a
// user. -update rewrites the expected output.
func TestScripts(t *testing.T) { runScripts(t, filepath.Join("testdata", "script")) }

// TestAgentScripts runs the scripts about agents on both stores; the smaller forms run each
// script on one of them.
func TestAgentScripts(t *testing.T) {
	all := scripts(t, filepath.Join("testdata", "script", "agent"), 1)
	half := len(all) / 2
	for store, some := range map[string][]string{
		"log":    testsize.Pick(all[:1], all[:half], all),
		"log.db": testsize.Pick(all[half:half+1], all[half:], all),
	} {
		t.Run(store, func(t *testing.T) { runFiles(t, some, store) })
	}
}

// TestPostgresScripts runs the scripts about a store on a server, $DSN, and its tables.
// The other DSNs name schemas that do not exist.
func TestPostgresScripts(t *testing.T) {
	dsn := pgtest.DSN(t)
	server, schema, err := pgtest.Split(dsn)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	variables := []string{"DSN=" + dsn, "SCHEMA=" + schema, "SERVER=" + at.Host}
	for _, name := range []string{"COPY", "OTHER", "OTHER_PARTIAL"} {
		other := schema + "_" + strings.ToLower(name)
		sibling, err := pgtest.With(dsn, "schema", other)
		if err != nil {
			t.Fatal(err)
		}
		variables = append(variables, name+"="+sibling)
		t.Cleanup(func() {
			if err := pgtest.Exec(server, "DROP SCHEMA IF EXISTS "+other+" CASCADE"); err != nil {
				t.Error(err)
			}
		})
	}
	runScripts(t, filepath.Join("testdata", "script", "postgres"), variables...)
}

// TestServerScripts runs the scripts about servers that refuse a user or a log. User
// "locked" needs a password.
func TestServerScripts(t *testing.T) {
	server := pgtest.Start(t, pgtest.Unsynced...)
	if err := server.Rule("host all locked all scram-sha-256"); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	runScripts(t, filepath.Join("testdata", "script", "server"), "SERVER="+at.Host, "OPTIONS=sslmode=disable&assume_synced=true")
}

// TestJetStreamScripts runs the scripts about a store on a server of NATS, $URL. $LOCKED asks
// for a password, and $OFF has no JetStream. The accounts of $FEW, $FULL and $NONE may have two
// streams, 1,000 bytes, and nothing. $SMALL takes small messages. On $SHARED, the user reader may
// only read, and the user blind may not ask for streams.
func TestJetStreamScripts(t *testing.T) {
	var variables []string
	for name, opts := range map[string]natstest.Options{
		"SERVER": {},
		"LOCKED": {Settings: `authorization { user: "ann", password: "right" }`},
		"OFF":    {JetStream: "enabled: false"},
		"FEW":    {Account: natstest.Account{Streams: 2}},
		"FULL":   {Account: natstest.Account{Bytes: 1000}},
		"NONE":   {Account: natstest.Account{Off: true}},
		"SMALL":  {Payload: 2 << 10},
		"SHARED": {Account: natstest.Account{Users: []natstest.User{
			{Name: "owner", Password: "secret"},
			{Name: "reader", Password: "secret", Publish: []string{"$JS.API.STREAM.INFO.*", "$JS.API.DIRECT.GET.*"}},
			{Name: "blind", Password: "secret", Publish: []string{"convlog.>", "$JS.API.DIRECT.GET.*"}},
		}}},
	} {
		url := natstest.Start(t, opts).URL()
		variables = append(variables, name+"="+strings.TrimPrefix(url, "nats://"))
		if name == "SERVER" {
			variables = append(variables, "URL="+url)
		}
	}
	runScripts(t, filepath.Join("testdata", "script", "jetstream"), variables...)
}

// scripts are one of each n scripts of a folder.
func scripts(t *testing.T, dir string, n int) (files []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no script in %s: %v", dir, err)
	}
	for i := 0; i < len(all); i += n {
		files = append(files, all[i])
	}
	return files
}

// runScripts runs the scripts of a folder; the short form runs one of eight.
func runScripts(t *testing.T, dir string, variables ...string) {
	t.Helper()
	runFiles(t, scripts(t, dir, testsize.Pick(8, 1, 1)), "", variables...)
}

func runFiles(t *testing.T, files []string, store string, variables ...string) {
	files, names := forWorkers(t, files)
	ws := &workers{}
	t.Cleanup(ws.stop)
	testscript.Run(t, testscript.Params{
		Files:         files,
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("GORACE", os.Getenv("GORACE"))
			if store != "" {
				env.Setenv("CONVLOG_STORE", store)
				env.Setenv("USER", "ann")
			}
			env.Vars = append(env.Vars, variables...)
			env.Values[spawnedKey{}] = spawnedCommands{}
			of := &scriptEnv{slices.Clone(names), ws}
			for _, variable := range env.Vars {
				name, _, _ := strings.Cut(variable, "=")
				of.names = append(of.names, name)
			}
			slices.Sort(of.names)
			of.names = slices.Compact(of.names)
			env.Values[scriptEnvKey{}] = of
			return nil
		},
		Condition: condition,
		Cmds:      commands(),
	})
}

// condition knows [root]: the test runs as the user whom no permission stops.
func condition(name string) (bool, error) {
	if name != "root" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	return os.Geteuid() == 0, nil
}
