package main

import (
	"context"
	"io"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/openai"
	"github.com/convlog/convlog/projection"
)

// historyOptions choose the form of a history.
type historyOptions struct {
	format string
	model  string
	at     eventFlag
	full   bool
	turns  turnRange
}

// historyFormats are the values of history's --format.
var historyFormats = []string{"text", "openai", "responses", "anthropic", "json"}

func (a *app) historyCommand() *cobra.Command {
	var x historyOptions
	cmd := a.command(&cobra.Command{
		Use:        "history SESSION",
		SuggestFor: []string{"log"},
		Short:      "Show the messages that the model sees after rewinds, compactions",
		Long: `Show the effective history of a session: the messages that a model gets to
continue it. Orphaned (rewound) events are not in it. A compaction is replaced by
its summary. Every call is followed by its result, or by a result that says that
the call was interrupted. --turn prints the messages of some turns.

--format openai (Chat Completions), responses (OpenAI's Responses) and anthropic
(Messages) print system text and messages in the form of a request to the API.
Add the model, limits and tools yourself. --format json prints the messages in the
form of the log, one per line.`,
		Example: "  logtool history order-42 --format anthropic --for-model claude-sonnet-4-5 > request.json",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !slices.Contains(historyFormats, x.format):
				return usagef("--format is text, openai, responses, anthropic or json, not %q", x.format)
			case x.full && (a.json || x.format != "text"):
				return usagef("--full is for text: leave it out")
			case a.json && x.format == "text":
				x.format = "json"
			}
			if err := x.at.check(); err != nil {
				return err
			}
			if err := x.turns.check(); err != nil {
				return err
			}
			return a.session(cmd.Context(), forReading, args[0], func(log *eventlog.Log, session string) error {
				return a.history(cmd.Context(), log, session, x)
			})
		},
	}, traits{section: secRead, verb: "reading", paged: true, content: true, args: []argument{sessionArg}})
	cmd.Flags().StringVar(&x.format, "format", "text", "text, openai, responses, anthropic or json")
	completeFlag(cmd, "format", historyFormats...)
	cmd.Flags().StringVar(&x.model, "for-model", "", "the target model: reasoning that only another model accepts is left out")
	x.at.flag(cmd, "at", atUsage)
	x.turns.flag(cmd)
	cmd.Flags().BoolVar(&x.full, "full", false, "fold nothing")
	return cmd
}

func (a *app) history(ctx context.Context, log *eventlog.Log, session string, x historyOptions) error {
	entries, err := historyOf(ctx, log, session, x)
	if err != nil {
		return err
	}
	p := a.printer()
	switch x.format {
	case "text":
		err = p.history(entries, x.full)
	case "json":
		err = p.historyRows(entries)
	default:
		err = p.Stream(func(w io.Writer) error { return x.request(ctx, log, w, entries) })
	}
	if err != nil {
		return err
	}
	return p.Flush()
}

// history is the messages of a history, which are read one after the other.
type history = iter.Seq2[projection.Entry, error]

// historyOf returns the messages of a session's history.
func historyOf(ctx context.Context, log *eventlog.Log, session string, x historyOptions) (history, error) {
	at, err := x.at.seq(ctx, log, session)
	if err != nil {
		return nil, err
	}
	all := projection.Entries(ctx, log, session, projection.RenderOptions{}, projection.Options{At: at})
	return x.turns.entries(ctx, log, session, func(yield func(projection.Entry, error) bool) {
		for e, err := range all {
			if !yield(e, pastEnd(ctx, log, session, err)) {
				return
			}
		}
	})
}

// request writes the body of a request to a model API with the history.
func (x *historyOptions) request(ctx context.Context, log *eventlog.Log, w io.Writer, entries history) error {
	blob := interop.Bodies(ctx, log)
	switch x.format {
	case "anthropic":
		return anthropic.WriteMessages(w, entries, anthropic.Options{Model: x.model, Blob: blob})
	case "responses":
		return openai.WriteResponses(w, entries, openai.Options{Model: x.model, Blob: blob})
	}
	return openai.WriteChat(w, entries, openai.Options{Model: x.model, Blob: blob})
}

// history prints a history in the layout of show.
func (p *printer) history(entries history, full bool) error {
	r := &renderer{printer: p, full: full}
	j := joiner(r, transcript.Window)
	for e, err := range entries {
		if err != nil {
			return err
		}
		if err := j.Add(transcript.OfHistory(&e)); err != nil {
			return err
		}
	}
	if err := j.Flush(); err != nil {
		return err
	}
	r.finish()
	return nil
}

// historyRows prints a history as JSON.
func (p *printer) historyRows(entries history) error {
	for e, err := range entries {
		if err == nil {
			err = p.Value(answers.NewMessage(&e))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
