package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Array writes a request whose last member is an array, element by element. Nothing is
// written after an error.
type Array struct {
	w     io.Writer
	head  string // the text before the first element
	begun bool
	err   error // the first error
}

// NewArray returns an Array that writes head before the first element: the beginning of
// the request, up to the "[" of the array.
func NewArray(w io.Writer, head string) Array {
	a := Array{w: w, head: head}
	if w == nil {
		a.err = errors.New("the writer is nil")
	}
	return a
}

// Add writes an element.
func (a *Array) Add(element any) {
	a.separate()
	if a.err == nil {
		a.Fail(json.MarshalWrite(a, element, jsontext.PreserveRawStrings(true)))
	}
}

// Write writes a part of an element.
func (a *Array) Write(text []byte) (n int, err error) {
	if a.err == nil {
		n, a.err = a.w.Write(text)
	}
	return n, a.err
}

// End writes the ends of the array and of the request. It returns the first error.
func (a *Array) End() error {
	if !a.begun {
		a.separate()
	}
	a.write("]}")
	return a.err
}

// Err returns the first error.
func (a *Array) Err() error { return a.err }

// Fail sets the first error, unless there is one. A nil error changes nothing.
func (a *Array) Fail(err error) { a.err = cmp.Or(a.err, err) }

// separate writes the text before the next element.
func (a *Array) separate() {
	if a.begun {
		a.write(",")
		return
	}
	a.begun = true
	a.write(a.head)
}

func (a *Array) write(text string) { _, _ = a.Write([]byte(text)) } // Err has the error

// Each passes the messages of a history to add, up to the first error.
func Each(history iter.Seq2[projection.Entry, error], add func(*event.Message) error) error {
	if history == nil {
		return nil
	}
	for e, err := range history {
		if err != nil {
			return err
		}
		if err := add(&e.Message); err != nil {
			return fmt.Errorf("render event %d: %w", e.Seq, err)
		}
	}
	return nil
}

// Value returns the request that write writes for a history.
func Value(history []projection.Entry, write func(io.Writer, iter.Seq2[projection.Entry, error]) error) (jsontext.Value, error) {
	var b bytes.Buffer
	err := write(&b, func(yield func(projection.Entry, error) bool) {
		for i := range history {
			if !yield(history[i], nil) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
