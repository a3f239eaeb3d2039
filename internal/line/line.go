package line

import (
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// Version is the envelope version that this package writes, and the newest that it
// reads.
const Version = 1

// Line is one stored event. Parse fills a Line from bytes, and Append renders it. The
// byte slices share the bytes of the parsed line.
type Line struct {
	Seq       int64
	ID        ulid.ULID
	Session   string
	Type      string
	Timestamp time.Time
	// Cost is in nano-dollars; 0 means that the line has no cost.
	Cost int64
	// More is the number of events of the same append after this one.
	More int32
	// Cut is the torn tail that was truncated before the append, or zero.
	Cut Cut
	// Blobs are the digests of the blobs that the line refers to, sorted.
	Blobs []string
	// Metadata is a JSON object or nil. Extras are the unknown members, as
	// `"name":value,…`.
	Metadata, Extras []byte
	// Data is the payload. It is nil if the payload is spilled or redacted.
	Data []byte
	// Digest and Bytes are the digest and the size of a spilled payload.
	Digest string
	Bytes  int64
	// Redacted means that the content was erased. Kept is the object in its place.
	Redacted bool
	Kept     []byte

	Sealed
	verbatim []byte // the parsed bytes, if they are not canonical
}

// Cut describes a truncated torn tail.
type Cut struct {
	Bytes  int64
	SHA256 Hash
}

// Errors of Parse.
var (
	// ErrForeign: the line is a JSON object with neither crc nor hash.
	ErrForeign = errors.New("not a line of a log")
	// ErrCRC: crc is not the checksum of the line.
	ErrCRC = errors.New("checksum does not match")
	// ErrMalformed: the line is not a JSON object or has an invalid envelope.
	ErrMalformed = errors.New("malformed line")
	// ErrSession: the line has the id of another session.
	ErrSession = errors.New("line of another session")
)

// VersionError reports an envelope with a newer version.
type VersionError struct{ Got int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("envelope version %d is newer than %d: update the program", e.Got, Version)
}

// NotCanonical returns the parsed bytes if they are not canonical, or nil.
func (l *Line) NotCanonical() []byte { return l.verbatim }

// HasRareMembers reports whether the line has other members than header, salt, hash,
// metadata and data.
func (l *Line) HasRareMembers() bool {
	return l.Redacted || l.Digest != "" || l.verbatim != nil || l.Blobs != nil || l.Extras != nil || l.Cut.Bytes > 0
}

// Errors of CheckJSON and CheckData. Parse does not check this JSON: a correct crc
// only shows that the line has not changed since it was written.
var (
	ErrMetaJSON = errors.New("metadata and unknown members are not compact, well-formed JSON")
	ErrDataJSON = errors.New("data is not compact, well-formed JSON")
	ErrKeptJSON = errors.New("kept is not compact, well-formed JSON")
)
