package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// The preview of a session has its newest messages, in their order, and no context of a program.
func TestPreviewHasTheNewestMessages(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	for i := range 300 {
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage(fmt.Sprintf("question %d.", i)), event.AssistantMessage("answer")); err != nil {
			t.Fatal(err)
		}
	}
	context := event.UserMessage("files of the folder")
	if err := context.SetMetadata("context", true); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), "s", eventlog.Any(), context); err != nil {
		t.Fatal(err)
	}
	text := previewOf(t.Context(), log, "s")
	lines := strings.Split(text, "\n")
	if len(lines) != 20 || lines[0] != "user: question 290." || lines[19] != "assistant: answer" || strings.Contains(text, "files of") {
		t.Errorf("%d lines:\n%s", len(lines), text)
	}
}
