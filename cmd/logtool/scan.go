package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/secrets"
)

func (a *app) scanCommand() *cobra.Command {
	var rules bool
	cmd := a.command(&cobra.Command{
		Use:   "scan [SESSION...]",
		Short: "List the secrets in a log: API keys, tokens, keys, passwords",
		Long: `List the secrets in all sessions, or in the sessions named: the session, the seq,
the type of the event, the member and the rule, and never the secret. scan reads the
own events of a session, orphaned ones too, and the bodies of text that they refer
to. It does not read images and archives, torn tails, and the copies that repairs
saved.

A rule knows the form of a secret; --rules lists the rules. A secret of another form
is not found. Change a secret that was found, then erase it with the command that
scan prints.`,
		Example: "  logtool store scan order-42 --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if rules {
				return a.printRules(args)
			}
			return a.reading(func(log *eventlog.Log) error { return a.scan(cmd.Context(), log, args) })
		},
	}, traits{verb: "scanning", args: []argument{sessionArg, more}, exits: "0 no secret found, 1 secrets found, or failed, 2 wrong usage."})
	cmd.Flags().BoolVar(&rules, "rules", false, "list the rules and their source, and read no session")
	return cmd
}

// secretRow is a secret with --json.
type secretRow struct {
	Session string     `json:"session"`
	Seq     int64      `json:"seq"`
	Type    event.Type `json:"type"`
	Member  string     `json:"member"`
	Rule    string     `json:"rule"`
	// Structural: a redaction keeps the member.
	Structural bool `json:"structural,omitzero"`
}

func (a *app) scan(ctx context.Context, log *eventlog.Log, args []string) error {
	sessions, err := a.sessions(ctx, log, args, false)
	if err != nil {
		return err
	}
	if len(sessions) == 0 {
		a.progress.ReadsAll()
	}
	x := scanned{printer: a.printer(), seqs: map[string][]int64{}}
	var failed []error
	for f, err := range secrets.Scan(ctx, log, secrets.Default(), sessions...) {
		if err != nil {
			failed = append(failed, err)
			continue
		}
		x.add(f)
		if !a.json {
			x.place(f)
			continue
		}
		if err := x.Value(secretRow{f.Session, f.Seq, f.Type, f.Member, f.Rule, f.Unmasked}); err != nil {
			return err
		}
	}
	if !a.json && (x.found > 0 || len(failed) == 0) {
		x.advise()
	}
	failed = append(failed, x.Flush(), x.err())
	return errors.Join(failed...)
}

// scanned counts what a scan finds.
type scanned struct {
	*printer
	found    int
	sessions []string
	seqs     map[string][]int64 // of events that can be redacted
}

func (x *scanned) add(f secrets.Located) {
	x.found++
	if n := len(x.sessions); n == 0 || x.sessions[n-1] != f.Session {
		x.sessions = append(x.sessions, f.Session)
	}
	seqs := x.seqs[f.Session]
	if n := len(seqs); !f.Unmasked && (n == 0 || seqs[n-1] != f.Seq) {
		x.seqs[f.Session] = append(seqs, f.Seq)
	}
}

// place prints the place of a secret.
func (x *scanned) place(f secrets.Located) {
	note := ""
	if f.Unmasked {
		note = "  (redact keeps this member: remove the session)"
	}
	x.Printf("%s  #%d %s  %s  %s%s\n", clean(f.Session), f.Seq, clean(string(f.Type)), clean(f.Member), x.Paint(term.Yellow, f.Rule), note)
}

// advise prints the commands that erase the secrets.
func (x *scanned) advise() {
	if x.found == 0 {
		x.Printf("no secret found\n")
		return
	}
	x.Printf("\n")
	for _, session := range x.sessions {
		if seqs := x.seqs[session]; len(seqs) > 0 {
			x.Printf("erase: logtool redact %s %s\n", shellWord(session), ranges(seqs))
		}
	}
}

// ranges writes ascending seqs as arguments of redact: 3 5-9.
func ranges(seqs []int64) string {
	var words []string
	for i := 0; i < len(seqs); {
		j := i
		for j+1 < len(seqs) && seqs[j+1] == seqs[j]+1 {
			j++
		}
		word := strconv.FormatInt(seqs[i], 10)
		if j > i {
			word += "-" + strconv.FormatInt(seqs[j], 10)
		}
		words, i = append(words, word), j+1
	}
	return strings.Join(words, " ")
}

// err reports the secrets, so that the exit code is 1.
func (x *scanned) err() error {
	if x.found == 0 {
		return nil
	}
	return fmt.Errorf("%s in %s; change them where they are valid, and erase them as listed",
		count(x.found, "secret"), count(len(x.sessions), "session"))
}

// ruleRow is a rule with --json.
type ruleRow struct {
	Rule  string `json:"rule"`
	Finds string `json:"finds"`
}

func (a *app) printRules(args []string) error {
	if len(args) > 0 {
		return usagef("--rules reads no session: leave out %s", shellWord(args[0]))
	}
	var rows []ruleRow
	var cells [][]string
	for _, r := range secrets.Rules() {
		rows = append(rows, ruleRow{r.Name, r.Finds})
		cells = append(cells, []string{r.Name, r.Finds})
	}
	return printRows(a, rows, func(p *printer) {
		p.Table([]string{"RULE", "FINDS"}, cells)
		p.Printf("\n%s of %s\n", count(len(rows), "rule"), secrets.RulesSource)
	})
}
