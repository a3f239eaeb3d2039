package line

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/rawjson"
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

	raw      []byte // the canonical bytes
	verbatim []byte // the parsed bytes, if they are not canonical
	at       offsets
}

// Cut describes a truncated torn tail.
type Cut struct {
	Bytes  int64
	SHA256 Hash
}

// offsets locate parts of the canonical bytes.
type offsets struct {
	headerEnd uint32 // the header starts at bodyStart
	hash      uint32 // first digit of hash
	commit    uint32 // first digit of commit, in a redacted line
	metaStart uint32 // metadata and unknown members
	metaEnd   uint32
}

const (
	crcStart  = len(`{"crc":"`)
	bodyStart = len(`{"crc":"00000000",`)
)

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

// Canonical returns the canonical bytes of the line.
func (l *Line) Canonical() []byte { return l.raw }

// NotCanonical returns the parsed bytes if they are not canonical, or nil.
func (l *Line) NotCanonical() []byte { return l.verbatim }

// HasRareMembers reports whether the line has other members than header, salt, hash,
// metadata and data.
func (l *Line) HasRareMembers() bool {
	return l.Redacted || l.Digest != "" || l.verbatim != nil || l.Blobs != nil || l.Extras != nil || l.Cut.Bytes > 0
}

// Header returns the hashed header.
func (l *Line) Header() []byte { return l.raw[bodyStart:l.at.headerEnd] }

// Meta returns the metadata member and the unknown members, as they are hashed.
func (l *Line) Meta() []byte { return l.raw[l.at.metaStart:l.at.metaEnd] }

// HashOffset returns the index of the first digit of hash in the canonical bytes.
func (l *Line) HashOffset() uint32 { return l.at.hash }

// Hash returns the hash of the line.
func (l *Line) Hash() Hash { return HashAt(l.raw, l.at.hash) }

// HashAt parses the hash of a canonical line at its HashOffset.
func HashAt(canonical []byte, offset uint32) (h Hash) {
	decodeHex(h[:], canonical[offset:offset+64])
	return h
}

// Salt returns the salt. The line must not be redacted.
func (l *Line) Salt() (salt [16]byte) {
	end := l.at.hash - uint32(len(`","hash":"`))
	decodeHex(salt[:], l.raw[end-32:end])
	return salt
}

// Errors of CheckJSON and CheckData. Parse does not check this JSON: a correct crc
// only shows that the line has not changed since it was written.
var (
	ErrMetaJSON = errors.New("metadata and unknown members are not compact, well-formed JSON")
	ErrDataJSON = errors.New("data is not compact, well-formed JSON")
	ErrKeptJSON = errors.New("kept is not compact, well-formed JSON")
)

// CheckJSON checks the metadata, the unknown members and kept of a parsed line.
func (l *Line) CheckJSON() error {
	if meta := l.Meta(); len(meta) > 0 {
		if err := checkJSON(slices.Concat([]byte{'{'}, meta, []byte{'}'}), ErrMetaJSON); err != nil {
			return err
		}
	}
	if l.Redacted {
		return checkJSON(l.Kept, ErrKeptJSON)
	}
	return nil
}

// CheckData checks the JSON of a payload.
func CheckData(data []byte) error { return checkJSON(data, ErrDataJSON) }

func checkJSON(value []byte, bad error) error {
	if rawjson.IsCompact(value) {
		return nil
	}
	again, err := rawjson.Compact(value)
	if err != nil {
		return fmt.Errorf("%w: %w", bad, err)
	}
	if !bytes.Equal(again, value) {
		return bad
	}
	return nil
}
