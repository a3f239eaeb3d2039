package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/projection"
)

// summarized is the compaction that resume --compact-from makes: a summary in the place of the
// messages before a turn.
type summarized struct {
	Turn     int `json:"turn"`
	Messages int `json:"messages"` // that the summary replaces
	// The summary has the texts of an older compaction, and prompts.
	Summaries int `json:"summaries,omitzero"`
	Prompts   int `json:"prompts,omitzero"`

	compaction event.Compaction
}

// compactBefore puts a summary in the place of the messages of c before a turn.
func compactBefore(ctx context.Context, log *eventlog.Log, session string, at int64, turn int, c *interop.Conversation) (*summarized, error) {
	start, err := fork.Resolve(ctx, log, session, fork.BeforeTurn(turn))
	if err != nil {
		return nil, err
	}
	for e, err := range log.Read(ctx, session, eventlog.Between(start.Seq+1, at).OnPath()) {
		if err != nil {
			return nil, err
		}
		if older, ok, err := event.Decode[event.Compaction](&e); e.Redacted() && ok || err == nil && ok && (older.Replace || older.Covers.To > 0) {
			return nil, usagef("event %d is a compaction in turn %d or after it: name a later turn with --compact-from, or none", e.Seq, turn)
		}
	}
	h, err := projection.Load(ctx, log, session, projection.History(), projection.Options{At: at})
	if err != nil {
		return nil, err
	}
	return newSummarized(turn, start.Seq, at, &h.State, c)
}

// newSummarized puts a summary in the place of the messages of c that come from events up to
// seq. h is the history at the event at; it gets the compaction.
func newSummarized(turn int, seq, at int64, h *projection.HistoryState, c *interop.Conversation) (*summarized, error) {
	s := &summarized{Turn: turn}
	s.compaction = event.Compaction{Strategy: "prompts", Trigger: "resume", Covers: event.Stretch{From: 1, To: seq}}
	var summaries, prompts []string
	times := map[int64]time.Time{}
	for i := range c.History {
		e := &c.History[i]
		times[e.Seq] = c.Times[i]
		if e.Seq > seq || e.Made != "" {
			continue
		}
		if e.Context != "" || e.Message.Role == event.System || e.Message.Role == event.Developer {
			entry := event.CompactionEntry{Seq: e.Seq}
			if e.Seq == 0 { // of an older compaction
				entry.Message = &e.Message
			}
			s.compaction.Entries = append(s.compaction.Entries, entry)
			continue
		}
		text := strings.TrimSpace(e.Message.Text())
		switch {
		case text == "" || c.Contexts[e.Seq]:
		case e.Seq == 0:
			summaries = append(summaries, text)
		case e.Message.Role == event.User:
			prompts = append(prompts, text)
		}
	}
	if len(summaries)+len(prompts) == 0 {
		return nil, usagef("no message with a text is before turn %d: leave out --compact-from", turn)
	}
	s.Summaries, s.Prompts = len(summaries), len(prompts)
	m := event.Message{Role: event.User, Parts: []event.Part{event.Text(leftOutText(summaries, prompts))}}
	s.compaction.Entries = append(s.compaction.Entries, event.CompactionEntry{Message: &m})
	e := event.New(s.compaction)
	e.Seq = at + 2 // after session_forked
	if err := projection.History().Apply(h, &e); err != nil {
		return nil, err
	}
	history, err := h.Messages()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(history, func(e projection.Entry) bool { return e.Seq > seq }) {
		return nil, usagef("turn %d has no message up to seq %d, where resume goes on: name an earlier turn with --compact-from", turn, at)
	}
	s.Messages = len(c.History) - len(history) + 1
	c.History, c.Times = history, make([]time.Time, len(history))
	for i := range history {
		c.Times[i] = times[history[i].Seq]
	}
	return s, nil
}

// leftOutText is the text for the model in the place of the messages.
func leftOutText(summaries, prompts []string) string {
	const most = 2000 // bytes of a prompt
	var b strings.Builder
	b.WriteString("The beginning of this conversation is left out.")
	if len(summaries) > 0 {
		b.WriteString(" Its summary:\n\n" + strings.Join(summaries, "\n\n"))
	}
	if len(prompts) > 0 {
		b.WriteString("\n\nThe user's messages in it, the oldest first:\n")
	}
	for _, prompt := range prompts {
		if len(prompt) > most {
			prompt = strings.ToValidUTF8(prompt[:most], "") + " …"
		}
		b.WriteString("\n- " + prompt)
	}
	return b.String()
}

func (s *summarized) String() string {
	var of []string
	if s.Summaries > 0 {
		of = append(of, "the summary of an older compaction")
	}
	if s.Prompts > 0 {
		of = append(of, count(s.Prompts, "prompt"))
	}
	return fmt.Sprintf("%s before turn %d became a summary, made of %s", count(s.Messages, "message"), s.Turn, strings.Join(of, " and "))
}

// newestTokens is the size of the newest request and its answer, as the model counted; 0 if unknown.
func newestTokens(ctx context.Context, log *eventlog.Log, session string, at int64) (int64, error) {
	h, err := projection.Load(ctx, log, session, projection.History(), projection.Options{At: at})
	if err != nil {
		return 0, err
	}
	size, err := h.State.Size()
	return size.Tokens, err
}
