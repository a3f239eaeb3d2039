package searchtext_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/searchtext"
)

func TestNilArguments(t *testing.T) {
	ctx := t.Context()
	var noContext context.Context
	message := event.UserMessage("hello")
	opens := searchtext.Reader{Open: func(context.Context, event.Digest) (io.ReadCloser, error) { return nil, io.EOF }}
	document := event.New(event.Message{Role: event.User, Parts: []event.Part{
		{Type: event.DocumentPart, Name: "a.txt", MediaType: "text/plain", Blob: event.BlobRef{Blob: event.DigestOf(nil)}}}})
	for name, call := range map[string]func() error{
		"context":  func() error { _, err := opens.Read(noContext, &message); return err },
		"event":    func() error { _, err := opens.Read(ctx, nil); return err },
		"nil Open": func() error { _, err := new(searchtext.Reader).Read(ctx, &document); return err },
	} {
		if err := call(); !errors.Is(err, event.ErrNilArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := searchtext.AppendFold(nil, nil); len(text) != 0 {
		t.Errorf("folded nil: %q", text)
	}
}
