package render_test

import (
	"errors"
	"io"
	"iter"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/openai"
	"github.com/convlog/convlog/projection"
)

var errWrite = errors.New("no space")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errWrite }

// The writing of a request ends at the first error of the writer or of the history.
func TestWriteErrors(t *testing.T) {
	errHistory := errors.New("no such history")
	for name, write := range map[string]func(io.Writer, iter.Seq2[projection.Entry, error]) error{
		"chat":      func(w io.Writer, h iter.Seq2[projection.Entry, error]) error { return openai.WriteChat(w, h) },
		"responses": func(w io.Writer, h iter.Seq2[projection.Entry, error]) error { return openai.WriteResponses(w, h) },
		"messages":  func(w io.Writer, h iter.Seq2[projection.Entry, error]) error { return anthropic.WriteMessages(w, h) },
	} {
		read := 0
		endless := func(yield func(projection.Entry, error) bool) {
			for roles := []event.Role{event.User, event.Assistant}; ; read++ {
				m := event.Message{Role: roles[read%2], Parts: []event.Part{event.Text("Hi")}}
				if !yield(projection.Entry{Message: m}, nil) {
					return
				}
			}
		}
		if err := write(fullDisk{}, endless); !errors.Is(err, errWrite) || read > 5 {
			t.Errorf("%s: the error of the writer is %v, after %d messages", name, err, read)
		}
		broken := func(yield func(projection.Entry, error) bool) { yield(projection.Entry{}, errHistory) }
		if err := write(io.Discard, broken); !errors.Is(err, errHistory) {
			t.Errorf("%s: the error of the history is %v", name, err)
		}
		if err := write(nil, nil); err == nil {
			t.Errorf("%s: a nil writer is no error", name)
		}
	}
}
