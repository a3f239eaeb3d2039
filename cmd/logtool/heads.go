package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/verify"
)

func (a *app) headsCommand() *cobra.Command {
	var sign, name string
	cmd := a.command(&cobra.Command{
		Use:   "heads",
		Short: "Print the heads of all sessions, to compare the store with later",
		Long: `Print a checkpoint: the number of sessions, the root of a Merkle tree (RFC 6962) over
their heads, and a line for each session: seq, hash and id. Keep it outside the store,
for example in a git repository: verify --heads then names each session that is missing,
shorter, rewritten or rolled back, and what is new.

--sign signs the first three lines, as a signed note of golang.org/x/mod/sumdb/note
(C2SP tlog-checkpoint), with the key in a file. --new-key NAME makes a key: standard
output has the secret key, standard error the key for verify --key.`,
		Example: "  logtool store heads > heads-2026-11-28.txt\n  logtool verify --heads heads-2026-11-28.txt",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name != "" && sign != "" {
				return usagef("--new-key makes a key, and --sign uses one: give one of them")
			}
			if name != "" {
				return a.newKey(name)
			}
			return a.reading(func(log *eventlog.Log) error { return a.heads(cmd.Context(), log, sign) })
		},
	}, traits{verb: "reading heads"})
	cmd.Flags().StringVar(&sign, "sign", "", "sign the checkpoint with the key in this file")
	cmd.Flags().StringVar(&name, "new-key", "", "make a key of this name, and print it")
	return cmd
}

// newKey prints a new key: the secret one to the output, the public one to the errors.
func (a *app) newKey(name string) error {
	secret, public, err := note.GenerateKey(rand.Reader, name)
	if err == nil {
		_, err = note.NewSigner(secret) // checks the name
	}
	if err != nil {
		return usagef("--new-key %s: a name has no blanks and no plus: %v", name, err)
	}
	p := a.printer()
	p.Printf("%s\n", secret)
	fmt.Fprintf(a.err, "%s\n", public)
	return p.Flush()
}

// storedHead is the head of a session with --json.
type storedHead struct {
	Session string     `json:"session"`
	Seq     int64      `json:"seq"`
	Hash    event.Hash `json:"hash"`
}

// headSum is the last row of heads with --json.
type headSum struct {
	Store    string `json:"store,omitzero"`
	Sessions int    `json:"sessions"`
	Root     string `json:"root"` // in base64, as in the checkpoint
}

func (a *app) heads(ctx context.Context, log *eventlog.Log, key string) error {
	if a.setMemory != nil {
		a.setMemory(headsMemory)
	}
	c, err := verify.Heads(ctx, log)
	if err != nil {
		return fmt.Errorf("%w: run logtool verify", err)
	}
	p := a.printer()
	if a.json {
		for _, session := range slices.Sorted(maps.Keys(c.Heads)) {
			h := c.Heads[session]
			if err := p.Value(storedHead{session, h.Seq, h.Hash}); err != nil {
				return err
			}
		}
		root := c.Root()
		_ = p.Value(headSum{c.Store, len(c.Heads), base64.StdEncoding.EncodeToString(root[:])}) // flush returns the error
		return p.Flush()
	}
	const head = 3 // lines, which a signature covers
	next, stop := iter.Pull(c.Lines())
	defer stop()
	var text strings.Builder
	for range head {
		line, _ := next()
		text.WriteString(line + "\n")
	}
	signed := text.String()
	if key != "" {
		if signed, err = sign(signed, key); err != nil {
			return err
		}
	}
	p.Printf("%s", signed)
	for line, ok := next(); ok; line, ok = next() {
		p.Printf("%s\n", line)
	}
	return p.Flush()
}

// sign adds a signature with the key in a file.
func sign(text, file string) (string, error) {
	secret, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--sign: %w: make a key with logtool store heads --new-key NAME > FILE", err)
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(secret)))
	if err != nil {
		return "", usagef("--sign: %s has no secret key of a note: %v", file, err)
	}
	out, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		return "", fmt.Errorf("sign the checkpoint: %w", err)
	}
	return string(out), nil
}

// checkpoint is a checkpoint that verify compares the store with.
type checkpoint struct {
	verify.Checkpoint
	unchecked bool // it has signatures, and no key checks them
}

// readCheckpoint reads the file of --heads; - is standard input. key is a public key, or a file
// with one.
func (a *app) readCheckpoint(file, key string) (*checkpoint, error) {
	if file == "" {
		if key != "" {
			return nil, usagef("--key checks the signature of --heads: give both")
		}
		return nil, nil
	}
	read := func() ([]byte, error) { return os.ReadFile(file) }
	if file == "-" {
		read = func() ([]byte, error) { return io.ReadAll(a.in) }
	}
	text, err := read()
	c := &checkpoint{}
	if err == nil {
		err = c.UnmarshalText(text)
	}
	if err != nil {
		return nil, fmt.Errorf("--heads %s: %w", file, err)
	}
	body, rest, _ := bytes.Cut(text, []byte("\n\n"))
	signatures, _, _ := bytes.Cut(rest, []byte("\n\n"))
	if key == "" {
		c.unchecked = bytes.HasPrefix(signatures, []byte("— "))
		return c, nil
	}
	if stored, err := os.ReadFile(key); err == nil {
		key = strings.TrimSpace(string(stored))
	}
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return nil, usagef("--key is the public key that logtool store heads --new-key printed, or a file with it: %v", err)
	}
	whole := slices.Concat(body, []byte("\n\n"), bytes.TrimSuffix(signatures, []byte("\n")), []byte("\n"))
	if _, err := note.Open(whole, note.VerifierList(verifier)); err != nil {
		return nil, fmt.Errorf("--heads %s: the checkpoint is not signed by %s: %w", file, verifier.Name(), err)
	}
	return c, nil
}

// sinceRow lists with --json the sessions that a checkpoint does not have.
type sinceRow struct {
	New []string `json:"new"`

	unchecked bool // the checkpoint's signature
}

// since prints the sessions that the checkpoint does not have.
func (v *verifyRun) since(row *sinceRow) error {
	if v.app.json {
		return v.printer.Value(row)
	}
	mark := v.printer.Paint(term.Yellow, "note")
	if row.unchecked {
		v.printer.Printf("%s the checkpoint is signed, and no --key checked its signature\n", mark)
	}
	if n := len(row.New); n > 0 {
		const most = 5
		names := strings.Join(row.New[:min(n, most)], ", ")
		if n > most {
			names += ", …"
		}
		v.printer.Printf("%s %s new since the checkpoint: %s\n", mark, count(n, "session"), clean(names))
	}
	return nil
}
