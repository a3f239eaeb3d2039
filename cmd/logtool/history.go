package main

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/openai"
	"github.com/convlog/convlog/interop/transcript"
	"github.com/convlog/convlog/projection"
)

// telling is how a history is told.
type historyOptions struct {
	format string
	model  string
	at     int64
	full   bool
}

// historyFormats are what history's --format takes.
var historyFormats = []string{"text", "openai", "responses", "anthropic", "json"}

func (a *app) historyCommand() *cobra.Command {
	var x historyOptions
	cmd := &cobra.Command{
		Use:   "history SESSION",
		Short: "Show what the model sees: the effective history, after rewinds and compactions",
		Long: `Show the effective history of a session: what a model would be given to go on
with it. What was rewound is not in it, what a compaction covers is replaced by
its summary, and every call is followed by its result, or by one that says it
was interrupted.

--format openai (Chat Completions), responses (OpenAI's Responses) and anthropic
(Messages) print system text and messages as a request to the API has them;
model, limits and tools are the caller's to add. json prints the messages as the
log has them, one on a line.`,
		Example: `  logtool history order-42
  logtool history order-42 --format anthropic --model claude-sonnet-4-5 > request.json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !slices.Contains(historyFormats, x.format):
				return usagef("--format is text, openai, responses, anthropic or json, not %q", x.format)
			case x.at < 0 || x.at == 0 && cmd.Flags().Changed("at"):
				return usagef("--at is the seq of an event, from 1, not %d", x.at)
			case x.full && (a.json || x.format != "text"):
				return usagef("--full is for text: leave it out")
			case a.json && x.format == "text":
				x.format = "json"
			}
			return a.reading(func(log *eventlog.Log) error { return a.history(cmd.Context(), log, args[0], x) })
		},
	}
	cmd.Flags().StringVar(&x.format, "format", "text", "text, openai, responses, anthropic or json")
	cmd.Flags().StringVar(&x.model, "model", "", "the model it is for: reasoning that only another one understands is left out")
	cmd.Flags().Int64Var(&x.at, "at", 0, "as of this event, by its seq")
	cmd.Flags().BoolVar(&x.full, "full", false, "fold nothing")
	return cmd
}

func (a *app) history(ctx context.Context, log *eventlog.Log, name string, x historyOptions) error {
	session, err := resolve(ctx, log, name)
	if err != nil {
		return err
	}
	view, err := projection.Load(ctx, log, session, projection.History(), projection.Options{At: x.at})
	if err != nil {
		return pastEnd(ctx, log, session, err)
	}
	entries, err := view.State.Messages()
	if err != nil {
		return err
	}
	p := a.printer()
	switch x.format {
	case "text":
		return a.told(p, entries, x.full)
	case "json":
		for i := range entries {
			if err := p.value(newHistoryRow(&entries[i])); err != nil {
				return err
			}
		}
		return p.flush()
	}
	request, err := x.request(ctx, log, entries)
	if err != nil {
		return err
	}
	if err := p.raw(request); err != nil {
		return err
	}
	return p.flush()
}

// request renders a history as the body of a request.
func (x *historyOptions) request(ctx context.Context, log *eventlog.Log, entries []projection.Entry) (jsontext.Value, error) {
	blob := interop.Bodies(ctx, log)
	switch x.format {
	case "anthropic":
		return anthropic.Messages(entries, anthropic.Options{Model: x.model, Blob: blob})
	case "responses":
		return openai.Responses(entries, openai.Options{Model: x.model, Blob: blob})
	}
	return openai.Chat(entries, openai.Options{Model: x.model, Blob: blob})
}

// told prints a history as show prints a session.
func (a *app) told(p *printer, entries []projection.Entry, full bool) error {
	r := &renderer{printer: p, full: full}
	j := joiner(r, holdForShow)
	for i := range entries {
		if err := j.Add(entryOf(&entries[i])); err != nil {
			return err
		}
	}
	if err := j.Flush(); err != nil {
		return err
	}
	r.finish()
	return p.flush()
}

// entryOf is a message of a history as it is shown.
func entryOf(told *projection.Entry) *transcript.Entry {
	x := &transcript.Entry{Message: told.Message, IsMessage: true, Label: told.Context}
	x.Event.Seq = told.Seq
	if told.Made != "" {
		x.Label = string(told.Made)
	}
	return x
}

// toldJSON is a message of a history as history prints it with --json.
type historyRow struct {
	Seq     int64           `json:"seq,omitzero"`
	Seqs    []int64         `json:"seqs,omitzero"`
	Context string          `json:"context,omitzero"`
	Made    projection.Made `json:"made,omitzero"`
	Message event.Message   `json:"message"`
}

func newHistoryRow(e *projection.Entry) historyRow {
	return historyRow{Seq: e.Seq, Seqs: e.Seqs, Context: e.Context, Made: e.Made, Message: e.Message}
}
