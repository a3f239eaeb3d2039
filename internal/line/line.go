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

// Version is the envelope version that this package writes, and the highest that
// it reads.
const Version = 1

// Line is one event as it is stored. Parse fills it from bytes; Append renders it.
// Byte slices share the bytes of the parsed line.
type Line struct {
	Seq       int64
	ID        ulid.ULID
	Session   string
	Type      string
	Timestamp time.Time
	// Cost is in nano-dollars; 0 is absent.
	Cost int64
	// More is how many events of the same append follow.
	More int32
	// Cut is the torn tail that was removed before the append; zero is none.
	Cut Cut
	// Blobs are the digests of the blobs that the line needs, sorted.
	Blobs []string
	// Metadata is an object or nil. Extras are the unknown members, as
	// `"name":value,…`.
	Metadata, Extras []byte
	// Data is the payload; nil when it is spilled or redacted.
	Data []byte
	// Digest and Bytes name the blob with the payload of a spilled line.
	Digest string
	Bytes  int64
	// Redacted says that the content was erased. Kept is the object that is left.
	Redacted bool
	Kept     []byte

	raw      []byte // the canonical bytes
	verbatim []byte // the parsed bytes, if they are not canonical
	at       offsets
}

// Cut describes a torn tail.
type Cut struct {
	Bytes  int64
	SHA256 Hash
}

// offsets locate parts of the canonical bytes.
type offsets struct {
	headerEnd uint32 // the header begins at bodyStart
	hash      uint32 // first digit of hash
	commit    uint32 // first digit of commit, in a redacted line
	metaStart uint32 // metadata and unknown members
	metaEnd   uint32
}

const (
	crcStart  = len(`{"crc":"`)
	bodyStart = len(`{"crc":"00000000",`)
)

// What is wrong with a line.
var (
	// ErrForeign: a JSON object with neither crc nor hash.
	ErrForeign = errors.New("not a line of a log")
	// ErrCRC: the crc is not the checksum of the line.
	ErrCRC = errors.New("checksum does not match")
	// ErrMalformed: not a JSON object, or not a valid envelope.
	ErrMalformed = errors.New("malformed line")
	// ErrSession: the line names another session.
	ErrSession = errors.New("line of another session")
)

// VersionError reports an envelope of a newer version.
type VersionError struct{ Got int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("envelope version %d is newer than %d", e.Got, Version)
}

// Canonical is the canonical rendering.
func (l *Line) Canonical() []byte { return l.raw }

// NotCanonical is the line as it was parsed, if that is not the canonical
// rendering; else nil.
func (l *Line) NotCanonical() []byte { return l.verbatim }

// Rare reports whether the line has anything besides the usual members: header,
// salt, hash, metadata and data.
func (l *Line) Rare() bool {
	return l.Redacted || l.Digest != "" || l.verbatim != nil || l.Blobs != nil || l.Extras != nil || l.Cut.Bytes > 0
}

// Header is the hashed header.
func (l *Line) Header() []byte { return l.raw[bodyStart:l.at.headerEnd] }

// Meta is the metadata member and the unknown members, as they are hashed.
func (l *Line) Meta() []byte { return l.raw[l.at.metaStart:l.at.metaEnd] }

// HashOffset is the index of the first digit of hash in the canonical bytes.
func (l *Line) HashOffset() uint32 { return l.at.hash }

// Hash is the line's link of the chain.
func (l *Line) Hash() Hash { return HashAt(l.raw, l.at.hash) }

// HashAt reads the hash of a canonical line whose HashOffset is known.
func HashAt(canonical []byte, offset uint32) (h Hash) {
	decodeHex(h[:], canonical[offset:offset+64])
	return h
}

// Salt is the salt of a line that is not redacted.
func (l *Line) Salt() (salt [16]byte) {
	end := l.at.hash - uint32(len(`","hash":"`))
	decodeHex(salt[:], l.raw[end-32:end])
	return salt
}

// Why the JSON of a line with a correct crc is not valid. Parse does not check it:
// the crc says only that the line is as it was written.
var (
	ErrMetaJSON = errors.New("metadata and unknown members are not compact, well-formed JSON")
	ErrDataJSON = errors.New("data is not compact, well-formed JSON")
	ErrKeptJSON = errors.New("kept is not compact, well-formed JSON")
)

// CheckJSON checks the JSON of a parsed line besides its data.
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

// CheckData checks the JSON of data.
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
