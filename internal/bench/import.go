//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/lists"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

var importTrials = []trial{
	{
		rows: []row{{
			name:     "import/jsonl",
			measured: "Import of 20 Claude Code transcripts of 200 records, into jsonl, durable as by default",
			against:  "json.Unmarshal of each of their lines into an any",
			unit:     mebibytes, bar: atLeast(0.25),
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) {
			return importTranscripts(ctx, b, func() eventlog.Store { return jsonl.New(b.path("")) })
		},
	},
	{
		rows: []row{{
			name:     "import/sqlite",
			measured: "the same into sqlite, synchronous=FULL as by default",
			against:  "json.Unmarshal of each of their lines into an any",
			unit:     mebibytes, bar: atLeast(0.25),
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) {
			return importTranscripts(ctx, b, func() eventlog.Store { return sqlite.New(b.path(".db")) })
		},
	},
	{
		rows: []row{{
			name:     "import/list",
			measured: "Import of one list of 100,000 small messages into jsonl; their lines take six times as much",
			against:  "json.Unmarshal of the list into an any",
			unit:     mebibytes,
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) {
			return importMessages(ctx, b, "[", ",", "]")
		},
	},
	{
		rows: []row{{
			name:     "import/messages",
			measured: "the same of the messages each on a line",
			against:  "json.Unmarshal of each of the lines into an any",
			unit:     mebibytes,
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) {
			return importMessages(ctx, b, "", "\n", "\n")
		},
	},
}

func importTranscripts(ctx context.Context, b *bench, open func() eventlog.Store) ([]figure, error) {
	dir, files, err := b.transcripts(20, 200)
	if err != nil {
		return nil, err
	}
	return importTrial(ctx, b, b.sizes.rounds, claude.Format{}, dir, files, open)
}

func importMessages(ctx context.Context, b *bench, before, between, behind string) ([]figure, error) {
	path, file, err := b.messages(b.sizes.history, before, between, behind)
	if err != nil {
		return nil, err
	}
	return importTrial(ctx, b, min(b.sizes.rounds, 3), lists.Format{}, path, [][]byte{file}, func() eventlog.Store { return jsonl.New(b.path("")) })
}

// importTrial measures the import of the files at path.
func importTrial(ctx context.Context, b *bench, rounds int, format interop.Format, path string, files [][]byte, open func() eventlog.Store) ([]figure, error) {
	mib := float64(0)
	for _, file := range files {
		mib += float64(len(file)) / (1 << 20)
	}
	ours := func(ctx context.Context) (float64, error) {
		log := eventlog.Open(open())
		start := time.Now()
		_, err := interop.Import(ctx, log, []interop.Format{format}, []string{path})
		took := float64(time.Since(start).Nanoseconds()) / mib
		return took, errors.Join(err, log.Close()) // no background work may run during the other side
	}
	theirs := func(context.Context) (float64, error) {
		start := time.Now()
		for _, file := range files {
			for line := range bytes.Lines(file) {
				var v any
				if err := json.Unmarshal(line, &v); err != nil {
					return 0, err
				}
			}
		}
		return float64(time.Since(start).Nanoseconds()) / mib, nil
	}
	return compare(ctx, rounds, ours, theirs, samples.rates)
}

// messages writes n Chat Completions messages to a file.
func (b *bench) messages(n int, before, between, behind string) (path string, file []byte, err error) {
	w := newWriter()
	roles := []event.Role{event.User, event.Assistant}
	file = append(file, before...)
	for i := range n {
		if i > 0 {
			file = append(file, between...)
		}
		message := map[string]any{"role": roles[i%2], "content": fmt.Sprintf("%d: %s", i, w.text(60))}
		line, err := json.Marshal(message, json.Deterministic(true))
		if err != nil {
			return "", nil, err
		}
		file = append(file, line...)
	}
	file = append(file, behind...)
	path = b.path(".json")
	return path, file, os.WriteFile(path, file, 0o600)
}

// transcripts writes n transcripts in Claude Code's format, and returns the folder and
// the content of the files.
func (b *bench) transcripts(n, records int) (dir string, files [][]byte, err error) {
	dir = b.path("")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	for i := range n {
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		var file []byte
		for at, m := range messagesOf(converse(seededWriter(i), 2*records))[:records] {
			line, err := claudeLine(m, id, at)
			if err != nil {
				return "", nil, err
			}
			file = append(append(file, line...), '\n')
		}
		if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), file, 0o600); err != nil {
			return "", nil, err
		}
		files = append(files, file)
	}
	return dir, files, nil
}

// messagesOf returns the messages of the user, the assistant and the tools.
func messagesOf(c *conversation) (messages []event.Message) {
	for _, p := range c.payloads {
		if m, ok := p.(event.Message); ok && m.Role != event.System {
			messages = append(messages, m)
		}
	}
	return messages
}

// claudeLine returns a record of a transcript in Claude Code's format.
func claudeLine(m event.Message, session string, at int) ([]byte, error) {
	uuid := func(at int) string { return fmt.Sprintf("%s-%04d", strings.TrimPrefix(session, "00000000-"), at) }
	message := map[string]any{"role": m.Role}
	kind := "user"
	var content []any
	for _, p := range m.Parts {
		switch p.Type {
		case event.ToolCallPart:
			content = append(content, map[string]any{"type": "tool_use", "id": p.CallID, "name": p.Name, "input": jsontext.Value(p.Arguments)})
		case event.ToolResultPart:
			content = append(content, map[string]any{"type": "tool_result", "tool_use_id": p.CallID, "content": p.Content[0].Text})
		case event.ReasoningPart:
			content = append(content, map[string]any{"type": "thinking", "thinking": p.Text, "signature": ""})
		default:
			content = append(content, map[string]any{"type": "text", "text": p.Text})
		}
	}
	switch m.Role {
	case event.Tool:
		message["role"] = "user"
	case event.Assistant:
		kind = "assistant"
		message["id"], message["model"] = fmt.Sprintf("msg_%06d", at), m.Model
		message["usage"] = map[string]int{"input_tokens": 3, "output_tokens": 40, "cache_read_input_tokens": 9000}
	}
	message["content"] = content
	record := map[string]any{
		"type": kind, "sessionId": session, "uuid": uuid(at), "cwd": "/work", "version": "2.0.0", "gitBranch": "main",
		"timestamp": time.Date(2026, 1, 2, 3, 0, at, 0, time.UTC).Format(time.RFC3339Nano), "message": message, "isSidechain": false,
	}
	if at > 0 {
		record["parentUuid"] = uuid(at - 1)
	}
	return json.Marshal(record, json.Deterministic(true))
}
