package formats_test

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/projection"
)

func writers(t *testing.T) (all []interop.Writer) {
	for _, f := range formats.All() {
		if w, ok := f.(interop.Writer); ok {
			all = append(all, w)
		}
	}
	if len(all) < 5 {
		t.Fatalf("%d formats write files", len(all))
	}
	return all
}

// A written file has the messages of the history, block by block, except for the losses. The
// sessions of each program go to each program.
func TestWrittenFilesHaveTheHistory(t *testing.T) {
	for _, source := range writers(t) {
		t.Run(source.Name(), func(t *testing.T) {
			log, sessions := importtest.NewLog(t), 0
			importtest.Files(t, log, source, folders(t, source)...)
			for _, id := range importtest.Sessions(t, log) {
				history := importtest.History(t, log, id)
				isAnswer := func(e projection.Entry) bool { return e.Message.Role == event.Assistant }
				if !slices.ContainsFunc(history, isAnswer) { // an import of it can wait for a request
					continue
				}
				sessions++
				for _, target := range writers(t) {
					if want, got := throughFile(t, log, source, target, id, history); !slices.Equal(want, got) {
						t.Errorf("session %s in %s:\n%s", id, target.Name(), difference(want, got))
					}
				}
			}
			if sessions < 2 {
				t.Errorf("%d sessions", sessions)
			}
		})
	}
}

// throughFile writes a history for the target and imports the file. It returns the blocks of the
// history without the losses, and the blocks of the import.
func throughFile(t *testing.T, log *eventlog.Log, source interop.Format, target interop.Writer, id string, history []projection.Entry) (want, got []string) {
	t.Helper()
	c := interop.Conversation{
		ID: uuid.NewString(), Format: source.Name(), CWD: "/home/ada/work", At: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC),
		History: history, Blob: interop.Bodies(t.Context(), log), Contexts: map[int64]bool{},
	}
	for _, e := range importtest.Events(t, log, id) {
		if _, ok := e.MetadataValue("context"); ok {
			c.Contexts[e.Seq] = true
		}
	}
	if w, ok := target.(interface{ NewID() string }); ok {
		c.ID = w.NewID()
	}
	w, err := target.Write(c)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := target.Write(c); err != nil || !bytes.Equal(again.Body, w.Body) {
		t.Errorf("session %s in %s: a second file has other bytes, %v", id, target.Name(), err)
	}
	if !strings.HasSuffix(strings.TrimSuffix(w.Path, path.Ext(w.Path)), c.ID) {
		t.Errorf("path %q", w.Path)
	}
	other := importtest.NewLog(t)
	if r := importtest.Text(t, other, target, w.Path, string(w.Body)); len(r.Rejected) > 0 {
		t.Errorf("session %s in %s: %+v", id, target.Name(), r)
	}
	want = blocksOf(history, w.Losses, target.Name() == "gemini") // a record of Gemini CLI has its calls last
	return want, blocksOf(importtest.History(t, other, c.ID), nil, false)
}

// blocksOf are the blocks of a history as texts, without the losses. Calls have numbers instead of
// ids: some APIs refuse the ids of others.
func blocksOf(history []projection.Entry, losses map[string][]int64, callsLast bool) (all []string) {
	ids := map[string]int{}
	for i := range history {
		e := &history[i]
		m := e.Message
		if losses != nil && (e.Context != "" || e.Seq > 0 && slices.Contains(losses["context"], e.Seq) || m.Role == event.System || m.Role == event.Developer) {
			continue
		}
		if callsLast {
			m.Parts = slices.Clone(m.Parts)
			slices.SortStableFunc(m.Parts, func(a, b event.Part) int {
				return strings.Compare(strconv.FormatBool(a.Type == event.ToolCallPart), strconv.FormatBool(b.Type == event.ToolCallPart))
			})
		}
		for j := range m.Parts {
			p := &m.Parts[j]
			if isCall := p.Type == event.ToolCallPart || p.Type == event.ToolResultPart; isCall && ids[p.CallID] == 0 {
				ids[p.CallID] = len(ids) + 1
			}
		}
		all = append(all, blocks(&m, ids, func(kind string) bool { return slices.Contains(losses[kind], e.Seq) })...)
	}
	return all
}

// blocks are the parts of a message as texts, without what was lost.
func blocks(m *event.Message, ids map[string]int, lost func(kind string) bool) (all []string) {
	role := event.User
	if m.Role == event.Assistant {
		role = m.Role
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Type {
		case event.TextPart:
			if text := strings.TrimSpace(p.Text); text != "" {
				all = append(all, fmt.Sprintf("%s: %s", role, text))
			}
		case event.ReasoningPart:
			if !lost("reasoning") {
				all = append(all, fmt.Sprintf("%s thinks: %s", role, p.Text))
			}
		case event.ToolCallPart:
			arguments := p.Arguments
			if arguments.Kind() == '"' { // of a custom tool
				arguments = rawjson.Object([]rawjson.Member{{Name: "input", Value: arguments}})
			}
			all = append(all, fmt.Sprintf("call %d of %s: %s", ids[p.CallID], p.Name, arguments))
		case event.ToolResultPart:
			content := contentOf(p.Content)
			failed := p.IsError && !lost("error_mark") && !strings.HasPrefix(content, "[interrupted") // the text says so
			all = append(all, fmt.Sprintf("result %d, failed %v: %s", ids[p.CallID], failed, content))
		default:
			if !lost("server_tool") && !lost("opaque") {
				all = append(all, fmt.Sprintf("%s: %s %s", role, p.Type, p.Blob.Blob))
			}
		}
	}
	return all
}

func contentOf(parts []event.Part) string {
	var texts, files []string
	for i := range parts {
		if p := &parts[i]; p.Type == event.TextPart {
			texts = append(texts, strings.TrimSpace(p.Text))
		} else {
			files = append(files, string(p.Blob.Blob))
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n")) + strings.Join(files, " ")
}

func difference(want, got []string) string {
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	at := func(all []string) string {
		return strings.Join(all[min(i, len(all)):min(i+3, len(all))], "\n  ")
	}
	return fmt.Sprintf("block %d of %d and %d:\n  %s\nnot:\n  %s", i, len(want), len(got), at(want), at(got))
}

// The path of a written file is good on each system, whatever the working directory is.
func TestWrittenPaths(t *testing.T) {
	for _, cwd := range []string{"/home/ada/work", `C:\Users\ada\my shop`, `\\host\share`, "/", `C:\`, "/srv/..", "/проект"} {
		for _, target := range writers(t) {
			c := interop.Conversation{
				ID: uuid.NewString(), CWD: cwd, At: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC),
				History: []projection.Entry{{Seq: 1, Message: event.Message{Role: event.User, Parts: []event.Part{event.Text("hello")}}}},
			}
			w, err := target.Write(c)
			if err != nil || !filepath.IsLocal(w.Path) || strings.ContainsAny(w.Path, `\:`) {
				t.Errorf("%s, %s: %q, %v", target.Name(), cwd, w.Path, err)
			}
		}
	}
}
