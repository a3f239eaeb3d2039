package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/projection"
)

// decision is an answer to a review, from the command line.
type decision struct {
	answer     flow.Answer
	review     string // the argument REVIEW; empty for the only open review
	arguments  string // --arguments
	value      string // --value
	by, reason string
}

const aboutReviews = `The review may be left out if exactly one is open; the beginning of its id is enough.
logtool agent runs lists the open reviews. The reviews of sub-agents can be answered in the
session of the parent too. The first answer to a review counts. When all
reviews of the step are answered, an agent that runs continues at once; otherwise the
turn continues when the agent starts.`

func (a *app) approveCommand() *cobra.Command {
	x := decision{answer: flow.Answer{Decision: event.Approved}}
	cmd := a.decisionCommand(&x, &cobra.Command{
		Use:   "approve SESSION [REVIEW]",
		Short: "Approve what an agent asks for: the effect may run",
		Long: `Approve an effect that waits for a review, for example a tool call. logtool shows
what was asked and records the answer. --arguments approves it with other arguments.

` + aboutReviews,
		Example: "  logtool agent approve order-42 --arguments '{\"amount\":10}' --reason 'at most 10'",
	})
	cmd.Flags().StringVar(&x.arguments, "arguments", "", "run it with these arguments: JSON, or @FILE")
	return cmd
}

func (a *app) denyCommand() *cobra.Command {
	x := decision{answer: flow.Answer{Decision: event.Denied}}
	return a.decisionCommand(&x, &cobra.Command{
		Use:   "deny SESSION [REVIEW]",
		Short: "Deny what an agent asks for: the effect does not run",
		Long: `Deny an effect that waits for a review. logtool shows what was asked and records the
answer. The model is told the reason of a denied tool call.

` + aboutReviews,
		Example: "  logtool agent deny order-42 --reason 'the customer called'",
	})
}

func (a *app) answerCommand() *cobra.Command {
	x := decision{answer: flow.Answer{Decision: event.Answered}}
	cmd := a.decisionCommand(&x, &cobra.Command{
		Use:   "answer SESSION [REVIEW]",
		Short: "Answer a review with a value, in place of the effect",
		Long: `Answer a review with a value. The effect does not run: the value is its result, and
the model gets the value as the result of a tool call. logtool shows what was asked
and records the answer.

` + aboutReviews,
		Example: "  logtool agent answer order-42 --value 'paid in cash'",
	})
	cmd.Flags().StringVar(&x.value, "value", "", "the result: JSON, @FILE, or a text")
	return cmd
}

// decisionCommand completes a command that answers a review.
func (a *app) decisionCommand(x *decision, cmd *cobra.Command) *cobra.Command {
	a.command(cmd, traits{args: []argument{sessionArg, reviewArg}})
	cmd.Args = between(1, 2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			x.review = args[1]
		}
		if err := x.read(a); err != nil {
			return err
		}
		return a.session(cmd.Context(), forChanging, args[0], func(log *eventlog.Log, session string) error {
			return a.decide(cmd.Context(), log, session, x)
		})
	}
	cmd.Flags().StringVar(&x.reason, "reason", "", "why")
	byFlag(cmd, &x.by)
	return cmd
}

// read reads the values of the flags.
func (x *decision) read(a *app) (err error) {
	x.answer.By, x.answer.Reason = a.user(x.by), x.reason
	if x.answer.Decision == event.Answered && x.value == "" {
		return usagef("answer needs --value, the result of the effect")
	}
	if x.arguments != "" {
		if x.answer.Arguments, err = jsonValue("--arguments", x.arguments); err != nil {
			return err
		}
	}
	if x.value != "" {
		x.answer.Value, err = valueOf("--value", x.value)
	}
	return err
}

// byFlag adds --by, the person who decides, removes or erases.
func byFlag(cmd *cobra.Command, by *string) {
	cmd.Flags().StringVar(by, "by", "", "who it is, for the log; $USER@host by default")
}

// user is the value of --by, else the name of the user and the host.
func (a *app) user(by string) string {
	if by != "" {
		return by
	}
	name := cmp.Or(a.getenv("USER"), a.getenv("LOGNAME"), a.getenv("USERNAME"), "unknown")
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// valueOf reads a value of the command line: JSON, @FILE, or a text. A text that begins
// like an object or an array must be JSON.
func valueOf(what, text string) (jsontext.Value, error) {
	content, err := fileOrText(what, text)
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(strings.TrimSpace(content))
	if v.IsValid() {
		return v, nil
	}
	if len(v) > 0 && (v[0] == '{' || v[0] == '[') {
		return nil, usagef("%s is not JSON: %s", what, brief(content, 40))
	}
	text = strings.TrimSuffix(content, "\n")
	if !utf8.ValidString(text) {
		return nil, usagef("%s is not UTF-8 at byte %d", what, invalidByte(text))
	}
	return json.Marshal(text)
}

// jsonValue reads a JSON value of the command line, or of @FILE.
func jsonValue(what, text string) (jsontext.Value, error) {
	content, err := fileOrText(what, text)
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(strings.TrimSpace(content))
	if !v.IsValid() {
		return nil, usagef("%s is not JSON: %s", what, brief(content, 40))
	}
	return v, nil
}

// fileOrText is the content of FILE if text is @FILE, else text.
func fileOrText(what, text string) (string, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return text, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return string(content), nil
}

// decisionRow is an answer with --json.
type decisionRow struct {
	answers.Head `json:",inline"`
	Review       string         `json:"interrupt_id"`
	Name         string         `json:"name,omitzero"`
	Prompt       string         `json:"prompt,omitzero"`
	Asked        jsontext.Value `json:"asked,omitzero"` // the arguments of the request
	Decision     event.Decision `json:"decision"`
	By           string         `json:"by,omitzero"`
	Reason       string         `json:"reason,omitzero"`
	Arguments    jsontext.Value `json:"arguments,omitzero"`
	Value        any            `json:"value,omitzero"`
}

// decide shows what was asked, and records the answer.
func (a *app) decide(ctx context.Context, log *eventlog.Log, session string, x *decision) error {
	open, err := flow.Info(ctx, log, session)
	if err != nil {
		return err
	}
	var ids []string
	for _, r := range open.Approvals {
		ids = append(ids, r.InterruptID)
	}
	id, err := chosen(session, "review", x.review, ids)
	if err != nil {
		return err
	}
	answer, asked := x.answer, event.ApprovalRequest{InterruptID: id}
	answer.Review.InterruptID = id
	if i := slices.Index(ids, id); i >= 0 {
		r := open.Approvals[i]
		session = cmp.Or(r.SessionID, session)
		answer.Review = r
		if asked, err = a.asked(ctx, log, session, &r); err != nil {
			return err
		}
	}
	head, err := flow.Decide(ctx, log, session, answer)
	if err != nil {
		return err
	}
	row := decisionRow{answers.NewHead(session, head, 1), id, asked.Name, asked.Prompt, asked.Arguments, answer.Decision, answer.By, answer.Reason, answer.Arguments, answer.Value}
	return a.answer(row, func(p *printer) {
		p.head(session, head, decided(string(answer.Decision), answer.By, answer.Reason, answer.Arguments))
	})
}

// asked reads the request of a review. Without --json it prints it, before the answer is
// recorded.
func (a *app) asked(ctx context.Context, log *eventlog.Log, session string, r *projection.OpenApproval) (event.ApprovalRequest, error) {
	e, err := log.Event(ctx, session, r.Seq)
	if err != nil {
		return event.ApprovalRequest{}, err
	}
	q, err := event.DecodeKept[event.ApprovalRequest](&e)
	if err != nil || a.json {
		return q, err
	}
	p := a.printer()
	out := &renderer{printer: p, full: true}
	p.Printf("%s\n", p.Paint(term.Dim, "review "+clean(q.InterruptID)+" · "+at(e.Seq)+" · "+p.clock(e.Timestamp)))
	out.call(&event.Part{Name: q.Name, Arguments: q.Arguments}, indent)
	out.block(q.Prompt, indent, 0, "")
	out.block(string(q.Detail), indent, 0, term.Dim)
	return q, p.Flush()
}

// decided describes a decision on one line.
func decided(decision, by, reason string, arguments jsontext.Value) string {
	return brief(transcript.Decided(decision, by, reason, arguments), 160)
}

// chosen finds the one of ids with a name or a unique prefix. An empty name is the only
// id. A name that fits none of them is returned: package flow says why it is not open.
func chosen(session, noun, name string, ids []string) (string, error) {
	if slices.Contains(ids, name) {
		return name, nil
	}
	var fit []string
	for _, id := range ids {
		if strings.HasPrefix(id, name) {
			fit = append(fit, id)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", fmt.Errorf("session %q has %s: name one of %s", session, count(len(fit), "open "+noun), someOf(fit, 5))
	case name == "":
		return "", fmt.Errorf("session %q has no open %s; %s", session, noun, openHint)
	}
	return name, nil
}
