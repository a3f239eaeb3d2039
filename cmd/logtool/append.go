package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
)

// appendOptions are the arguments and flags of append.
type appendOptions struct {
	session string
	body    string // the last argument
	hasBody bool   // there is a last argument
	kind    string // --type
	events  bool   // --event
	expect  string // --expect
	durable bool   // --durable
	screen  screening
}

func (a *app) appendCommand() *cobra.Command {
	var x appendOptions
	cmd := a.command(&cobra.Command{
		Use:   "append SESSION [TEXT|-]",
		Short: "Append a message, an event, or several events at once",
		Long: `Append a user message: TEXT, or standard input for "-". With --type, append an
event of that type; the argument is its payload as JSON. With --event, append all
events on standard input, one {"type","data","metadata","cost","id"} object per line, all
together or none. SESSION is a full id. A missing session begins.

--expect is a condition on the session: "any", "new" (it does not exist yet), or the
SEQ:HASH of its newest event, in the form that append prints. If the condition does
not hold, nothing is appended and the exit code is 1.

--secrets looks for secrets in the events: warn stores and lists them, mask stores
[secret:RULE] in their place, refuse appends nothing. logtool store scan --rules lists the
rules.`,
		Example: "  logtool append order-42 --type external_input '{\"source\":\"mail\",\"kind\":\"reply\"}'",
		Args:    between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.session = args[0]
			if len(args) == 2 {
				x.body, x.hasBody = args[1], true
			}
			if err := x.check(); err != nil {
				return err
			}
			return a.append(cmd.Context(), &x)
		},
	}, traits{section: secMove, args: []argument{sessionArg, textArg}})
	cmd.Flags().StringVar(&x.kind, "type", "", "append an event of this `type`; the argument is its payload as JSON")
	completeFlag(cmd, "type", typeNames()...)
	cmd.Flags().BoolVar(&x.events, "event", false, "append the events on standard input, one JSON object per line")
	cmd.Flags().StringVar(&x.expect, "expect", "any", "any, new, or the SEQ:HASH of the newest event")
	cmd.Flags().BoolVar(&x.durable, "durable", false, "return only when the events are on disk")
	x.screen.flag(cmd)
	return cmd
}

func (x *appendOptions) check() error {
	switch {
	case x.events && x.kind != "":
		return usagef("--event and --type exclude each other: the events have their own types")
	case x.events && x.hasBody && x.body != "-":
		return usagef("--event reads the events from standard input, not from an argument")
	}
	if _, _, err := parseExpect(x.expect); err != nil {
		return err
	}
	if err := x.screen.check(); err != nil {
		return err
	}
	return event.CheckSessionID(x.session)
}

func (a *app) append(ctx context.Context, x *appendOptions) error {
	events, err := a.newEvents(x)
	if err != nil {
		return err
	}
	a.screen = &x.screen
	return a.writing(func(log *eventlog.Log) error {
		session, expect, err := x.target(ctx, log)
		if err != nil {
			return err
		}
		head, err := log.Append(ctx, session, expect, events...)
		if err != nil {
			return err
		}
		x.screen.report(a)
		return a.answer(answers.NewHead(session, head, len(events)), func(p *printer) { p.head(session, head, "") })
	})
}

// newEvents makes the events to append.
func (a *app) newEvents(x *appendOptions) ([]event.Event, error) {
	if x.events {
		return readEvents(a.in)
	}
	body := []byte(x.body)
	if !x.hasBody || x.body == "-" {
		var err error
		if body, err = io.ReadAll(a.in); err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
	}
	if x.kind != "" {
		return a.typed(event.Type(x.kind), body)
	}
	text := strings.TrimSuffix(string(body), "\n")
	if text == "" {
		return nil, usagef("nothing to append: give a text, or - and the text on standard input")
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the text is not UTF-8 at byte %d; convert it, for example with iconv -f LATIN1 -t UTF-8", invalidByte(text))
	}
	return []event.Event{event.UserMessage(text)}, nil
}

// typed makes an event from a type and a payload.
func (a *app) typed(t event.Type, payload []byte) ([]event.Event, error) {
	if text := strings.TrimSpace(string(payload)); !jsontext.Value(text).IsValid() && !strings.HasPrefix(text, "{") {
		return nil, fmt.Errorf("%w: with --type the payload is JSON, not %q; without --type the text becomes a user message", event.ErrInvalidData, brief(text, 40))
	}
	return []event.Event{{ID: event.NewID(), Type: t, Data: payload}}, nil
}

// invalidByte is the offset of the first byte that is not UTF-8.
func invalidByte(text string) int {
	for i, r := range text {
		if _, n := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
			return i
		}
	}
	return len(text)
}

// readEvents reads one object per line.
func readEvents(r io.Reader) ([]event.Event, error) {
	var events []event.Event
	dec := jsontext.NewDecoder(r)
	for {
		var g answers.NewEvent
		err := json.UnmarshalDecode(dec, &g, json.RejectUnknownMembers(true))
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("event %d on standard input: %w", len(events)+1, answers.InJSON(err))
		}
		events = append(events, g.Event())
	}
}

// target finds the session and makes the expectation. It takes full ids only, so that
// no event goes to the wrong session: the beginning of an id is rejected, and any
// other name begins a new session.
func (x *appendOptions) target(ctx context.Context, log *eventlog.Log) (string, eventlog.Expect, error) {
	expect, at, err := parseExpect(x.expect)
	if err != nil {
		return "", expect, err
	}
	session := x.session
	if x.expect != "new" {
		_, err := exactly(ctx, log, x.session)
		var beginning *beginningError
		if at == nil && errors.As(err, &beginning) {
			beginning.free = true
		}
		if err != nil && (at != nil || !errors.Is(err, eventlog.ErrNotFound)) {
			return "", expect, err
		}
	}
	if at != nil {
		if expect, err = at.complete(ctx, log, session); err != nil {
			return "", expect, err
		}
	}
	if x.durable {
		expect = expect.Durable()
	}
	return session, expect, nil
}

// shortHead is the head in --expect; its hash may be shortened.
type shortHead struct {
	seq  int64
	hash string
}

const (
	fullHash = 64
	someHash = 12 // digits of a hash in errors
)

// parseExpect parses --expect; at is set for SEQ:HASH.
func parseExpect(text string) (expect eventlog.Expect, at *shortHead, err error) {
	switch text {
	case "any":
		return eventlog.Any(), nil, nil
	case "new":
		return eventlog.New(), nil, nil
	}
	seq, hash, ok := strings.Cut(text, ":")
	n, err := strconv.ParseInt(seq, 10, 64)
	if !ok || err != nil || n < 1 || seq[0] == '+' || len(hash) < someHash || len(hash) > fullHash || strings.Trim(hash, "0123456789abcdef") != "" {
		return expect, nil, usagef("--expect is any, new or SEQ:HASH with %d to %d hex digits, not %q", someHash, fullHash, text)
	}
	return expect, &shortHead{n, hash}, nil
}

// complete makes the expectation for a head. A full hash is not compared with the
// head: eventlog detects a repeated append by it.
func (at *shortHead) complete(ctx context.Context, log *eventlog.Log, session string) (eventlog.Expect, error) {
	var padded event.Hash
	if err := padded.UnmarshalText([]byte(at.hash + strings.Repeat("0", fullHash-len(at.hash)))); err != nil {
		return eventlog.Expect{}, usagef("--expect: %v", err)
	}
	wanted := event.Head{Seq: at.seq, Hash: padded}
	if len(at.hash) == fullHash {
		return eventlog.At(wanted), nil
	}
	head, err := log.Head(ctx, session)
	if err != nil {
		return eventlog.Expect{}, err
	}
	if head.Seq != at.seq || !strings.HasPrefix(head.Hash.String(), at.hash) {
		return eventlog.Expect{}, &eventlog.ConflictError{Session: session, Expected: wanted, Actual: head}
	}
	return eventlog.At(head), nil
}

// head prints the head of a session and a note.
func (p *printer) head(session string, head event.Head, note string) {
	p.Printf("%s %s", clean(session), expectation(head))
	if note != "" {
		p.Printf("  %s", p.Paint(term.Dim, "("+note+")"))
	}
	p.Printf("\n")
}
