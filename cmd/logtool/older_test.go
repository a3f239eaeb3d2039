package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// The stores in testdata/older were written by commit e58251aa: a session with an erased event
// and an attachment, its fork, and an agent that hibernated at a review.
const older = "../../testdata/older"

type booking struct {
	Booked []string `json:"booked,omitzero"`
}

// continueOlder approves the review of the hibernated agent, and runs the rest of its turn.
func continueOlder(t *testing.T, log *eventlog.Log) {
	t.Helper()
	for _, session := range []string{"agent", "talk", "fork"} {
		if r, err := verify.New(log).Session(t.Context(), session); err != nil || r.Damaged() > 0 {
			t.Errorf("%v %+v", err, r)
		}
	}
	var ran []string
	agent := flow.Agent[booking]{Name: "trips", Log: log, Turn: func(ctx context.Context, turn *flow.Turn[booking]) error {
		do := func(name string, argument any, review *flow.Question) (string, error) {
			return flow.Do(ctx, turn, flow.Effect{Name: name, Arguments: argument, Review: review}, func(context.Context) (string, error) {
				ran = append(ran, name)
				return name + "ed", nil
			})
		}
		seat, err := do("search", "Leipzig", nil)
		if err != nil {
			return err
		}
		if err := turn.Update(func(b *booking) error { b.Booked = append(b.Booked, seat); return nil }); err != nil {
			return err
		}
		_, err = do("pay", 12, &flow.Question{Prompt: "Pay 12 euros?"})
		return err
	}}
	info, err := flow.Info(t.Context(), log, "agent")
	if err != nil || len(info.Approvals) != 1 {
		t.Fatalf("%+v %v", info, err)
	}
	if _, err := flow.Decide(t.Context(), log, "agent", flow.Answer{Review: info.Approvals[0], Decision: event.Approved}); err != nil {
		t.Fatal(err)
	}
	h, err := agent.Resume(t.Context(), flow.Ref{Session: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Wait(t.Context())
	if err != nil || strings.Join(out.Custom.Booked, " ") != "seat 12" || strings.Join(ran, " ") != "pay" {
		t.Errorf("%v, booked %q, ran %q", err, out.Custom.Booked, ran)
	}
}

// A folder and an export of the older program are read whole, and its agent continues in them.
func TestOlderFolderAndExport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(older, "folder"))); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"folder", "export.jsonl"} {
		at := place{kind: kindJSONL, path: t.TempDir()}
		if from == "folder" {
			at.path = dir
		}
		err := at.with(forWriting, func(log *eventlog.Log) error {
			if from != "folder" {
				f, err := os.Open(filepath.Join(older, from))
				if err != nil {
					return err
				}
				defer f.Close()
				if _, err := transfer.Import(t.Context(), log, f); err != nil {
					return err
				}
			}
			continueOlder(t, log)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func unzip(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(older, name))
	if err == nil {
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(r)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// refused checks that each access to an older store names its version.
func refused(t *testing.T, text string) {
	t.Helper()
	at, err := parsePlace(text, isFile, isDir)
	if err != nil {
		t.Fatal(err)
	}
	for use, do := range map[string]func(log *eventlog.Log) error{
		"read": func(log *eventlog.Log) error { _, err := verify.Heads(t.Context(), log); return err },
		"append": func(log *eventlog.Log) error {
			_, err := log.Append(t.Context(), "talk", eventlog.Any(), event.UserMessage("more"))
			return err
		},
	} {
		err := at.with(forWriting, do)
		var v *event.VersionError
		if !errors.As(err, &v) || v.Got >= v.Max || !strings.Contains(explain(err), "convert the store to a folder") {
			t.Errorf("%s of %s: %v", use, at, err)
		}
	}
}

// Databases and streams of the older program are refused by the name of their version, and not
// changed.
func TestOlderDatabase(t *testing.T) {
	t.Parallel()
	file, data := filepath.Join(t.TempDir(), "log.db"), unzip(t, "log.db.gz")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, file)
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the file has changed: %v", err)
	}
}

func TestOlderSchema(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	server, schema, err := pgtest.Split(dsn)
	if err != nil {
		t.Fatal(err)
	}
	statements := strings.NewReplacer("old.", schema+".", "SCHEMA old", "SCHEMA "+schema).Replace(string(unzip(t, "postgres.sql.gz")))
	if err := pgtest.Exec(server, statements); err != nil {
		t.Fatal(err)
	}
	refused(t, dsn)
	if n, err := pgtest.Number(server, "SELECT count(*) FROM "+schema+".events"); n != 18 || err != nil {
		t.Errorf("%d events, %v", n, err)
	}
}

func TestOlderStreams(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{Nodes: 1})
	node := servers.Nodes[0]
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(unzip(t, "streams.tar.gz"))); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(node.Folder(), "$G", h.Name)
		data, err := io.ReadAll(r)
		if h.Typeflag == tar.TypeDir {
			err = errors.Join(err, os.MkdirAll(to, 0o700))
		} else {
			err = errors.Join(err, os.WriteFile(to, data, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := servers.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	refused(t, servers.URL())
}
