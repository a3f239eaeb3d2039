// Checkhistory renders the effective history of every session of a store as a
// request to Anthropic and to OpenAI, and holds each to the rules of its API. It
// prints what is wrong, then a line of JSON with what it has seen, and fails if
// anything was wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/openai"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// seen is what was looked at.
type seen struct {
	Sessions  int            `json:"sessions"`
	Histories int            `json:"histories"` // with those of earlier events
	Entries   int            `json:"entries"`   // of the histories at the head, as all below
	Calls     int            `json:"calls"`
	Results   int            `json:"results"`
	Images    int            `json:"images"`
	Made      map[string]int `json:"made"`   // by the rendering
	Silent    int            `json:"silent"` // sessions in which nobody says anything
	Bytes     map[string]int `json:"bytes"`
	Wrong     int            `json:"wrong"`
}

func main() {
	store := flag.String("store", "", "a folder (jsonl), or a file ending in .db (sqlite)")
	cuts := flag.Int64("cuts", 0, "look at the history as of so many earlier events of each session too")
	flag.Parse()
	if err := run(context.Background(), *store, *cuts); err != nil {
		fmt.Fprintln(os.Stderr, "checkhistory:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string, cuts int64) error {
	log := open(path)
	defer log.Close()
	s := seen{Made: map[string]int{}, Bytes: map[string]int{}}
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return err
		}
		if err := s.session(ctx, log, info.ID, cuts); err != nil {
			return fmt.Errorf("session %q: %w", info.ID, err)
		}
	}
	line, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	if s.Wrong > 0 {
		return fmt.Errorf("%d requests are not valid", s.Wrong)
	}
	return nil
}

func open(path string) *eventlog.Log {
	if strings.HasSuffix(path, ".db") {
		return eventlog.Open(sqlite.New(path))
	}
	return eventlog.Open(jsonl.New(path))
}

// session checks the history of a session, and those as of earlier events.
func (s *seen) session(ctx context.Context, log *eventlog.Log, id string, cuts int64) error {
	head, err := log.Head(ctx, id)
	if err != nil {
		return err
	}
	s.Sessions++
	for i := range cuts {
		if at := 1 + i*head.Seq/cuts; at < head.Seq {
			if err := s.history(ctx, log, id, at, false); err != nil {
				return err
			}
		}
	}
	return s.history(ctx, log, id, head.Seq, true)
}

// history checks the history of a session as of an event.
func (s *seen) history(ctx context.Context, log *eventlog.Log, id string, at int64, count bool) error {
	h, err := projection.Load(ctx, log, id, projection.History(), projection.Options{At: at})
	if err != nil {
		return err
	}
	entries, err := h.State.Messages()
	if err != nil {
		return err
	}
	s.Histories++
	if count {
		s.count(entries)
	}
	body := func(r event.BlobRef) ([]byte, error) { return readBlob(ctx, log, r) }
	calls := 0
	for i := range entries {
		calls += len(entries[i].Message.ToolCalls())
	}
	one := rendering{id: id, at: at, calls: calls, count: count}
	claude, err := anthropic.Messages(entries, anthropic.Options{Blob: body})
	s.check(one, "anthropic", claude, err, modelapi.CheckMessages)
	chat, err := openai.Chat(entries, openai.Options{Blob: body})
	s.check(one, "openai", chat, err, modelapi.CheckChat)
	items, err := openai.Responses(entries, openai.Options{Blob: body})
	s.check(one, "responses", items, err, modelapi.CheckResponses)
	return nil
}

// rendering says what is rendered.
type rendering struct {
	id    string
	at    int64
	calls int  // in the history
	count bool // it is that of the head
}

func (s *seen) count(entries []projection.Entry) {
	s.Entries += len(entries)
	if len(entries) == 0 {
		s.Silent++
	}
	for i := range entries {
		m := &entries[i].Message
		s.Calls += len(m.ToolCalls())
		s.Results += len(m.ToolResults())
		s.Made[entries[i].Made]++
		for _, p := range m.Parts {
			if p.Type == event.ImagePart {
				s.Images++
			}
		}
	}
}

// check notes whether a rendering succeeded, is valid, and has all calls with a
// result for each.
func (s *seen) check(one rendering, name string, raw jsontext.Value, err error, check func(jsontext.Value) error) {
	if err == nil {
		err = check(raw)
	}
	if err == nil {
		err = paired(raw, one.calls)
	}
	if err != nil {
		s.Wrong++
		fmt.Printf("%s at %d: %s: %v\n", one.id, one.at, name, err)
	}
	if one.count {
		s.Bytes[name] += len(raw)
	}
}

// paired compares the calls and results of a request, of whatever shape, with the
// calls of the history.
func paired(raw jsontext.Value, calls int) error {
	var r struct {
		Messages []struct {
			Role    string         `json:"role"`
			Calls   []any          `json:"tool_calls"`
			Content jsontext.Value `json:"content"`
		} `json:"messages"`
		Input []block `json:"input"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	n := map[string]int{}
	for _, b := range r.Input {
		n[b.Type]++
	}
	for _, m := range r.Messages {
		n["function_call"] += len(m.Calls)
		n[m.Role]++
		var blocks []block
		if m.Content.Kind() == '[' && json.Unmarshal(m.Content, &blocks) != nil {
			return errors.New("blocks that are no objects")
		}
		for _, b := range blocks {
			n[b.Type]++
		}
	}
	made := n["function_call"] + n["tool_use"]
	answered := n["function_call_output"] + n["tool"] + n["tool_result"]
	if made != calls || answered != calls {
		return fmt.Errorf("%d calls and %d results of %d calls in the history", made, answered, calls)
	}
	return nil
}

// block is a block of content, or an item.
type block struct {
	Type string `json:"type"`
}

func readBlob(ctx context.Context, log *eventlog.Log, r event.BlobRef) ([]byte, error) {
	body, err := log.OpenBlob(ctx, r.Blob)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}
