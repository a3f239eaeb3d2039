package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
)

func (a *app) tokenCommand() *cobra.Command {
	var key, show string
	cmd := a.command(&cobra.Command{
		Use:   "token SESSION [SNAPSHOT]",
		Short: "Print a token for a snapshot of a session, or explain a token",
		Long: `Print a token that names a snapshot of a session; the newest one without SNAPSHOT. A
program continues the session there, with flow.ParseToken. --key-file signs the token
with the bytes of a file, at least 32: nobody without the key can make such a token.

--show prints what a token names. With --key-file it checks the signature too.`,
		Example: "  logtool state token order-42 --key-file token.key\n  logtool state token --show convlog:snapshot:v1:eyJzZXNzaW9uIjoiYSIsInNuYXBzaG90IjoiYiJ9",
		Args:    between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			secret, err := readKey(key)
			if err != nil {
				return err
			}
			switch {
			case show != "" && len(args) > 0:
				return usagef("--show explains a token: leave out the session")
			case show != "":
				return a.showToken(show, secret)
			case len(args) == 0:
				return usagef("too few arguments: %s", cmd.UseLine())
			}
			return a.session(cmd.Context(), forReading, args[0], func(log *eventlog.Log, session string) error {
				return a.makeToken(cmd.Context(), log, session, args[1:], secret)
			})
		},
	}, traits{args: []argument{sessionArg, snapshotArg}})
	cmd.Flags().StringVar(&show, "show", "", "print what this token names")
	keyFlag(cmd, &key)
	return cmd
}

// keyFlag adds --key-file, the key of tokens.
func keyFlag(cmd *cobra.Command, key *string) {
	cmd.Flags().StringVar(key, "key-file", "", "the file with the key of tokens, at least 32 bytes")
}

func readKey(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	key, err := os.ReadFile(file)
	if err == nil && len(key) == 0 {
		err = fmt.Errorf("the file %s is empty", file)
	}
	if err != nil {
		return nil, fmt.Errorf("--key-file: %w", err)
	}
	return key, nil
}

// tokenRow is a token with --json.
type tokenRow struct {
	Token    string `json:"token"`
	Kind     string `json:"kind"`
	Session  string `json:"session"`
	Snapshot string `json:"snapshot_id,omitzero"`
	Wait     string `json:"wait_id,omitzero"`
	Signed   bool   `json:"signed"`
	Checked  bool   `json:"signature_checked,omitzero"`
}

func (a *app) makeToken(ctx context.Context, log *eventlog.Log, session string, names []string, key []byte) error {
	snapshot, err := findSnapshot(ctx, log, session, names)
	if err != nil {
		return err
	}
	token, err := flow.Ref{Session: session, Snapshot: snapshot}.Token(key)
	if err != nil {
		return err
	}
	row := tokenRow{Token: token, Kind: "snapshot", Session: session, Snapshot: snapshot, Signed: len(key) > 0}
	return a.answer(row, func(p *printer) { _ = p.Raw([]byte(token)) }) // flush returns the error
}

// findSnapshot is the id of the named snapshot, else of the newest one on the path.
func findSnapshot(ctx context.Context, log *eventlog.Log, session string, names []string) (string, error) {
	if len(names) > 0 {
		s, err := projection.Find(ctx, log, session, names[0])
		return s.Snapshot.SnapshotID, err
	}
	for s, err := range projection.Snapshots(ctx, log, session, false) {
		return s.Snapshot.SnapshotID, err
	}
	return "", fmt.Errorf("session %q: %w", session, projection.ErrSnapshotNotFound)
}

// showToken prints what a token names. With a key it checks the signature.
func (a *app) showToken(token string, key []byte) error {
	row := tokenRow{Token: token, Kind: "snapshot", Signed: strings.Contains(token, "."), Checked: len(key) > 0}
	what := ""
	if strings.HasPrefix(token, "convlog:wait:") {
		ref, err := flow.ParseToken(token, key)
		if err != nil {
			return err
		}
		row.Kind, row.Session, row.Wait, what = "wait", ref.Session, ref.Wait, ref.Wait
	} else {
		ref, err := flow.ParseToken(token, key)
		if err != nil {
			return err
		}
		row.Session, row.Snapshot, what = ref.Session, ref.Snapshot, ref.Snapshot
	}
	return a.answer(row, func(p *printer) {
		p.Printf("%s %s of session %s, %s\n", row.Kind, clean(what), clean(row.Session), row.signature())
	})
}

func (row *tokenRow) signature() string {
	switch {
	case row.Checked:
		return "signed with the key"
	case row.Signed:
		return "signed; the signature was not checked"
	}
	return "not signed"
}
