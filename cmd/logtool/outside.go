package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/projection"
)

func (a *app) resolveCommand() *cobra.Command {
	var by, key string
	cmd := a.command(&cobra.Command{
		Use:   "resolve SESSION WAIT|TOKEN [VALUE]",
		Short: "End a wait of an agent, with a value",
		Long: `End a wait of a session: the agent continues with VALUE, which is JSON, @FILE or a
text; null without it. WAIT is the id of the wait, the beginning of the id, or its
name; logtool agent runs lists the waits. TOKEN is the token that the agent gave away. With
--key-file the token must be signed with that key.`,
		Example: "  logtool agent resolve order-42 parcel '{\"state\":\"delivered\"}'",
		Args:    between(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			value := any(nil)
			if len(args) == 3 {
				v, err := valueOf("VALUE", args[2])
				if err != nil {
					return err
				}
				value = v
			}
			signature, err := readKey(key)
			if err != nil {
				return err
			}
			return a.session(cmd.Context(), forChanging, args[0], func(log *eventlog.Log, session string) error {
				wait, err := findWait(cmd.Context(), log, session, args[1], signature)
				if err != nil {
					return err
				}
				head, err := flow.Resolve(cmd.Context(), log, session, wait, value, a.user(by))
				return a.recorded(session, head, "resolved", err)
			})
		},
	}, traits{args: []argument{sessionArg, waitArg, textArg}})
	byFlag(cmd, &by)
	keyFlag(cmd, &key)
	return cmd
}

// recorded prints the new head of a session, unless err is set.
func (a *app) recorded(session string, head event.Head, note string, err error) error {
	if err != nil {
		return err
	}
	return a.answer(answers.NewHead(session, head, 1), func(p *printer) { p.head(session, head, note) })
}

// findWait is the id of a wait: from a token, an id, the beginning of one, or a name.
func findWait(ctx context.Context, log *eventlog.Log, session, name string, key []byte) (string, error) {
	if strings.HasPrefix(name, "convlog:") || len(key) > 0 {
		ref, err := flow.ParseToken(name, key)
		if err == nil && ref.Session != session {
			err = fmt.Errorf("the token belongs to session %q, not %q", ref.Session, session)
		}
		return ref.Wait, err
	}
	open, err := projection.LoadPending(ctx, log, session)
	if err != nil {
		return "", err
	}
	var ids, named []string
	for _, w := range open.Waits {
		ids = append(ids, w.WaitID)
		if w.Reason == name {
			named = append(named, w.WaitID)
		}
	}
	if len(named) > 0 {
		return chosen(session, "wait", "", named)
	}
	return chosen(session, "wait", name, ids)
}

// outcomeFlags are the flags of reconcile.
type outcomeFlags struct {
	result, failure string
	notRun          bool
	by, reason      string
}

func (a *app) reconcileCommand() *cobra.Command {
	var x outcomeFlags
	cmd := a.command(&cobra.Command{
		Use:   "reconcile SESSION KEY",
		Short: "Record the outcome of an effect that was interrupted",
		Long: `Record what happened to an effect that began and has no result, and that must not run
twice. KEY is the key of the effect, or the beginning of the key; logtool agent runs lists
it as outcome. Look first whether the effect happened. Then give its --result (JSON,
@FILE or a text) or its --error; or --did-not-run, and it runs again. The model gets
the result of a tool call.`,
		Example: "  logtool agent reconcile order-42 3fb2d29b --result 'paid' --reason 'it is on the account'",
		Args:    between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := x.outcome(a, cmd)
			if err != nil {
				return err
			}
			return a.session(cmd.Context(), forChanging, args[0], func(log *eventlog.Log, session string) error {
				key, err := findEffect(cmd.Context(), log, session, args[1])
				if err != nil {
					return err
				}
				head, err := flow.Reconcile(cmd.Context(), log, session, key, o)
				return a.recorded(session, head, "reconciled", err)
			})
		},
	}, traits{args: []argument{sessionArg, outcomeArg}})
	cmd.Flags().StringVar(&x.result, "result", "", "the result of the effect: JSON, @FILE, or a text")
	cmd.Flags().StringVar(&x.failure, "error", "", "the effect failed with this error")
	cmd.Flags().BoolVar(&x.notRun, "did-not-run", false, "the effect did not happen: run it again")
	cmd.Flags().StringVar(&x.reason, "reason", "", "why")
	byFlag(cmd, &x.by)
	return cmd
}

func (x *outcomeFlags) outcome(a *app, cmd *cobra.Command) (flow.Outcome, error) {
	given := 0
	for _, name := range []string{"result", "error", "did-not-run"} {
		if cmd.Flags().Changed(name) {
			given++
		}
	}
	if given != 1 {
		return flow.Outcome{}, usagef("give one of --result, --error and --did-not-run")
	}
	o := flow.Outcome{DidNotRun: x.notRun, By: a.user(x.by), Reason: x.reason}
	if cmd.Flags().Changed("error") {
		o.Err = errors.New(x.failure)
	}
	if cmd.Flags().Changed("result") {
		v, err := valueOf("--result", x.result)
		if err != nil {
			return o, err
		}
		o.Result = v
	}
	return o, nil
}

func findEffect(ctx context.Context, log *eventlog.Log, session, name string) (string, error) {
	open, err := projection.LoadPending(ctx, log, session)
	if err != nil {
		return "", err
	}
	var keys []string
	for _, e := range open.Effects {
		keys = append(keys, e.Key)
	}
	return chosen(session, "effect", name, keys)
}

// abortRow is an abort with --json.
type abortRow struct {
	Session string      `json:"session"`
	Before  flow.Status `json:"before"`
	Status  flow.Status `json:"status"`
	// Runner is the process that was asked to end the turn.
	Runner string `json:"runner,omitzero"`
	// Unknown are the effects that began and have no result, unless a runner ends the turn.
	Unknown []answers.Open `json:"unknown,omitzero"`
}

func (a *app) abortCommand() *cobra.Command {
	var x event.Abort
	cmd := a.command(&cobra.Command{
		Use:   "abort SESSION",
		Short: "Abort the open turn of an agent",
		Long: `Abort the open turn of a session. A running agent is asked to end the turn. If none
runs, logtool ends it: reviews and waits close, and the session takes new inputs.
What the turn did and said stays. An effect that began and has no result is listed:
it may have run.`,
		Example: "  logtool agent abort order-42 --reason 'wrong order'",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.By = a.user(x.By)
			return a.session(cmd.Context(), forChanging, args[0], func(log *eventlog.Log, session string) error {
				return a.abort(cmd.Context(), log, session, x)
			})
		},
	}, traits{args: []argument{sessionArg}})
	cmd.Flags().StringVar(&x.Reason, "reason", "", "why")
	byFlag(cmd, &x.By)
	return cmd
}

func (a *app) abort(ctx context.Context, log *eventlog.Log, session string, x event.Abort) error {
	found, err := flow.Info(ctx, log, session)
	if err != nil {
		return err
	}
	before, err := flow.Abort(ctx, log, session, x)
	if err != nil {
		return err
	}
	switch before {
	case flow.StatusNew, flow.StatusFinished, flow.StatusFailed, flow.StatusAborted:
		return fmt.Errorf("session %q has no open turn: it is %s; nothing was changed", session, before)
	}
	after, err := flow.Info(ctx, log, session)
	if err != nil {
		return err
	}
	row := abortRow{Session: session, Before: before, Status: after.Status, Runner: found.Runner}
	if row.Runner == "" {
		row.Unknown = slices.DeleteFunc(answers.OpenOf(&found), func(o answers.Open) bool { return o.Kind != answers.OpenOutcome })
	}
	return a.answer(row, func(p *printer) {
		if row.Runner != "" {
			p.Printf("%s: asked runner %s to end the turn\n", clean(session), clean(row.Runner))
			return
		}
		p.Printf("%s: %s, was %s\n", clean(session), row.Status, before)
		for _, o := range row.Unknown {
			p.Printf("%s: effect %s (event %d) began and has no result: it may have run\n", clean(session), clean(o.Name), o.Seq)
		}
	})
}

// postRow is a posted input with --json.
type postRow struct {
	answers.Head `json:",inline"`
	Input        string `json:"input_id"`
	Known        bool   `json:"known,omitzero"` // the session had the input already
}

func (a *app) postCommand() *cobra.Command {
	var in flow.Input
	cmd := a.command(&cobra.Command{
		Use:   "post SESSION TEXT|-",
		Short: "Give an agent an input, from any process",
		Long: `Give a session an input: TEXT, or standard input for "-". The input waits in the log.
The agent takes it as its next turn. With --steer it goes into the running turn,
before the next call of the model; if no turn runs, it begins one.

With --id, an input that the session knows already is not stored again.`,
		Example: "  logtool agent post order-42 'And the invoice?' --id mail-7",
		Args:    between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			events, err := a.newEvents(&appendOptions{body: args[1], hasBody: true})
			if err != nil {
				return err
			}
			m, _, err := event.Decode[event.Message](&events[0])
			if err != nil {
				return err
			}
			in.Messages = []event.Message{m}
			return a.session(cmd.Context(), forChanging, args[0], func(log *eventlog.Log, session string) error {
				return a.post(cmd.Context(), log, session, in)
			})
		},
	}, traits{args: []argument{sessionArg, textArg}})
	cmd.Flags().BoolVar(&in.Steer, "steer", false, "into the running turn, not into a turn of its own")
	cmd.Flags().StringVar(&in.ID, "id", "", "the id of the input; a generated id by default")
	return cmd
}

func (a *app) post(ctx context.Context, log *eventlog.Log, session string, in flow.Input) error {
	if in.ID == "" {
		in.ID = event.NewID().String()
	}
	before, err := log.Head(ctx, session)
	if err != nil {
		return err
	}
	info, err := flow.Info(ctx, log, session)
	if err != nil {
		return err
	}
	in.PostOnly = true
	poster := &flow.Agent[jsontext.Value]{Name: cmp.Or(info.Agent, "logtool"), Log: log}
	if _, err := poster.Send(ctx, session, in); err != nil {
		return err
	}
	head, err := log.Head(ctx, session)
	if err != nil {
		return err
	}
	row := postRow{Head: answers.NewHead(session, head, 1), Input: in.ID, Known: head == before}
	if row.Known {
		row.Events = 0
	}
	return a.answer(row, func(p *printer) {
		note := "input " + clean(in.ID)
		if row.Known {
			note += ", known already: nothing was stored"
		}
		p.head(session, head, note)
	})
}
