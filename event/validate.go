package event

import (
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/rawjson"
)

// maxDepth is how deep the objects and arrays of an event's data, and of its
// metadata, may be nested. Programs that embed the data of events, as snapshots
// and requests do, can then still be read by parsers that stop at 10,000 levels.
const maxDepth = 1024

// CheckSessionID says why id cannot be a session id, with ErrInvalidSession: ids
// are 1 to 200 bytes of UTF-8 without control characters.
func CheckSessionID(id string) error {
	if err := line.CheckName(id, line.MaxSession); err != nil {
		return fmt.Errorf("%w %q: %w", ErrInvalidSession, line.Clip(id), err)
	}
	return nil
}

// checkType says why t cannot be an event type, with ErrInvalidType: types are 1
// to 128 bytes of UTF-8 without control characters.
func checkType(t Type) error {
	if err := line.CheckName(string(t), line.MaxType); err != nil {
		return fmt.Errorf("%w %q: %w", ErrInvalidType, line.Clip(string(t)), err)
	}
	return nil
}

// maxMetadata bounds metadata and unknown members together, in bytes.
const maxMetadata = 64 << 10

// Normalize checks the parts of e that every type has, and replaces its metadata and data
// by copies without white space. Log.Append calls it before it applies the rules of the
// type. If New could not encode the payload, Normalize returns that error. Its own errors
// are ErrInvalidType, Rule("timestamp"), Rule("cost"), Rule("metadata") and
// ErrInvalidData.
func (e *Event) Normalize() error {
	if e.rare != nil && e.rare.fault != nil && e.Data == nil {
		return e.rare.fault // New could not encode the payload
	}
	if err := checkType(e.Type); err != nil {
		return err
	}
	if year := e.Timestamp.UTC().Year(); year < 1 || year > 9999 {
		return fmt.Errorf("%w: year %d", errTimestamp, year)
	}
	if e.Cost < 0 {
		return fmt.Errorf("%w: %v is negative", errCost, e.Cost)
	}
	if err := e.compactMetadata(); err != nil {
		return err
	}
	if err := e.compactData(); err != nil {
		return err
	}
	return e.checkDepth()
}

func (e *Event) compactMetadata() error {
	if len(e.Metadata) == 0 {
		e.Metadata = nil
	} else {
		value, err := rawjson.Compact(e.Metadata)
		if err != nil {
			return fmt.Errorf("%w: %w", errMetadata, err)
		}
		if value[0] != '{' {
			return fmt.Errorf("%w: not an object", errMetadata)
		}
		e.Metadata = value
	}
	if n := len(e.Metadata) + len(e.Extras()); n > maxMetadata && n-e.provenanceBytes() > maxMetadata {
		return fmt.Errorf("%w: %d bytes, at most %d", errMetadata, n, maxMetadata)
	}
	return nil
}

func (e *Event) compactData() error {
	if len(e.Data) == 0 {
		return fmt.Errorf("%w: empty", ErrInvalidData)
	}
	value, err := rawjson.Compact(e.Data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidData, err)
	}
	e.Data = value
	return nil
}

// checkDepth refuses values that are nested too deeply. A snapshot embeds the data
// of other events, so it may be deeper.
func (e *Event) checkDepth() error {
	most := maxDepth
	if e.Type.Name() == ProjectionSnapshotted {
		most = 2 * maxDepth
	}
	if rawjson.Deeper(e.Data, most) {
		return fmt.Errorf("%w: nested more than %d levels", ErrInvalidData, most)
	}
	if rawjson.Deeper(e.Metadata, maxDepth) || rawjson.Deeper(e.Extras(), maxDepth) {
		return fmt.Errorf("%w: nested more than %d levels", errMetadata, maxDepth)
	}
	return nil
}

// AddBlobs adds blobs that the event needs and its payload does not list.
func (e *Event) AddBlobs(digests ...Digest) error {
	for _, d := range digests {
		if err := d.Check(); err != nil {
			return err
		}
	}
	if e.checkBlobs(digests) == nil {
		return nil
	}
	r := e.own()
	r.blobs = sortDigests(slices.Concat(digests, r.blobs))
	return nil
}

var (
	errUnlisted = errors.New("the payload refers to a blob that the line does not list")
	errMoveTo   = errors.New("head_moved to an event that is not before it")
)

// checkBlobs refuses an event if its payload refers to a blob that its line does not
// list.
func (e *Event) checkBlobs(needed []Digest) error {
	for _, d := range needed {
		if !slices.Contains(e.Blobs(), d) {
			return fmt.Errorf("%w: %w: %s", ErrInvalidBlob, errUnlisted, line.Clip(string(d)))
		}
	}
	return nil
}
