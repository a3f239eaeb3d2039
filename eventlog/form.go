package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Errors inside a CorruptError that Adopt and Verify give of one event.
var (
	errDataForm = errors.New("data is not compact, well-formed JSON")
	errMetaForm = errors.New("metadata and unknown members are not compact, well-formed JSON")
	errKeptForm = errors.New("kept is not compact, well-formed JSON")
	errUnlisted = errors.New("the payload refers to a blob that the line does not list")
	errMoveTo   = errors.New("head_moved to an event that is not before it")
)

// checkForm checks the JSON of a line, which slicing does not: its crc says only
// that it is as it was written.
func (e *Event) checkForm() error {
	if meta := e.line[e.off.metaStart:e.off.metaEnd]; len(meta) > 0 {
		if err := checkJSON(slices.Concat([]byte{'{'}, meta, []byte{'}'}), errMetaForm); err != nil {
			return err
		}
	}
	if e.Redacted() {
		return checkJSON(e.Kept(), errKeptForm)
	}
	return nil
}

func checkData(data []byte) error { return checkJSON(data, errDataForm) }

func checkJSON(value []byte, bad error) error {
	again, err := compact(value)
	if err != nil {
		return fmt.Errorf("%w: %w", bad, err)
	}
	if !bytes.Equal(again, value) {
		return bad
	}
	return nil
}

// checkPayload applies the rules of e's type that need no history but its own
// place, and returns the payload. What an import broke and marked is forgiven.
// Types that this program does not know have none, and newer versions of one
// that it knows give a *VersionError. e's data must be there.
func (e *Event) checkPayload() (Payload, error) {
	info, known := vocabulary[e.Type.Name()]
	if !known {
		return nil, nil
	}
	if err := e.Type.CheckVersion(); err != nil {
		return nil, err
	}
	p, err := info.parse(e.Type, e.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidPayload, err)
	}
	if err := p.check(); err != nil && len(e.broken()) == 0 {
		return p, err
	}
	if m, ok := p.(HeadMove); ok && m.To >= e.Seq {
		return p, fmt.Errorf("%w: %w", ErrInvalidTree, errMoveTo)
	}
	for _, d := range p.needs() {
		if !slices.Contains(e.Blobs(), d) {
			return p, fmt.Errorf("%w: %w: %s", ErrInvalidBlob, errUnlisted, clip(string(d)))
		}
	}
	return p, nil
}
