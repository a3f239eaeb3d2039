package line

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/rawjson"
)

// Sealed is the canonical bytes of a line that was parsed or rendered, and what they prove:
// its hash, and what the hash covers. The zero value is of no line.
type Sealed struct {
	raw []byte
	at  offsets
}

// offsets locate parts of the canonical bytes.
type offsets struct {
	headerEnd uint32 // the header starts at bodyStart
	hash      uint32 // first digit of hash
	metaStart uint32 // metadata and unknown members
	metaEnd   uint32 // data, digest or commit follows
}

const (
	crcStart  = len(`{"crc":"`)
	bodyStart = len(`{"crc":"00000000",`)
	// sessionAt is the distance from the end of seq to the session.
	sessionAt = len(`,"id":"`) + ulid.EncodedSize + len(`","session_id":`)
)

// Members that follow the metadata.
const (
	dataMember   = `,"data":`
	digestMember = `,"digest":"`
	commitMember = `,"commit":"`
	keptMember   = `","kept":`
)

// Canonical returns the canonical bytes of the line.
func (s *Sealed) Canonical() []byte { return s.raw }

// At returns s with its bytes at raw, a copy of its canonical bytes.
func (s *Sealed) At(raw []byte) Sealed { return Sealed{raw, s.at} }

// Data returns the payload, or nil if the line has none.
func (s *Sealed) Data() []byte {
	if s.raw == nil {
		return nil
	}
	data, inline := bytes.CutPrefix(s.rest(), []byte(dataMember))
	if !inline {
		return nil
	}
	return data
}

// Header returns the hashed header.
func (s *Sealed) Header() []byte { return s.raw[bodyStart:s.at.headerEnd] }

// Meta returns the metadata member and the unknown members, as they are hashed.
func (s *Sealed) Meta() []byte { return s.raw[s.at.metaStart:s.at.metaEnd] }

// Hash returns the hash of the line.
func (s *Sealed) Hash() (h Hash) {
	decodeHex(h[:], s.raw[s.at.hash:s.at.hash+64])
	return h
}

// Salt returns the salt. The line must not be redacted.
func (s *Sealed) Salt() (salt [16]byte) {
	end := s.at.hash - uint32(len(`","hash":"`))
	decodeHex(salt[:], s.raw[end-32:end])
	return salt
}

// Names returns nil if the line has this seq and session. Else the error matches ErrSession,
// or ErrMalformed if s is of no line.
func (s *Sealed) Names(seq int64, session string) error {
	if s.raw == nil {
		return fmt.Errorf("%w: the event was not stored", ErrMalformed)
	}
	var buf [256]byte // on the stack
	rest, ok := bytes.CutPrefix(s.Header(), strconv.AppendInt(append(buf[:0], `"v":1,"seq":`...), seq, 10))
	if !ok || rest[0] != ',' {
		return fmt.Errorf("%w: its seq is not %d", ErrMalformed, seq)
	}
	if !bytes.HasPrefix(rest[sessionAt:], append(appendText(buf[:0], session), ',')) {
		return fmt.Errorf("%w, not %q", ErrSession, Clip(session))
	}
	return nil
}

// Link computes the line's link from the line's bytes.
func (s *Sealed) Link() Link {
	return Link{header: sha256.Sum256(s.Header()), commit: s.Commit()}
}

// Follows reports whether the line's hash follows from prev.
func (s *Sealed) Follows(prev Hash) bool { return s.Link().After(prev) == s.Hash() }

// Commit returns H(salt ‖ H(meta) ‖ H(data)). It computes the value from the content,
// or reads it from a redacted line.
func (s *Sealed) Commit() (h Hash) {
	rest := s.rest()
	if digits, redacted := bytes.CutPrefix(rest, []byte(commitMember)); redacted {
		decodeHex(h[:], digits[:64])
		return h
	}
	var data Hash
	if digest, spilled := bytes.CutPrefix(rest, []byte(digestMember)); spilled {
		data, _ = DigestSum(string(digest[:DigestLen]))
	} else {
		data = sha256.Sum256(rest[len(dataMember):])
	}
	meta := emptyHash
	if s.at.metaEnd > s.at.metaStart {
		meta = sha256.Sum256(s.Meta())
	}
	return commit(s.Salt(), meta, data)
}

// rest is the members after the metadata.
func (s *Sealed) rest() []byte { return s.raw[s.at.metaEnd : len(s.raw)-1] }

// CheckJSON checks the metadata, the unknown members and kept of a line.
func (s *Sealed) CheckJSON() error {
	if meta := s.Meta(); len(meta) > 0 {
		if err := checkJSON(slices.Concat([]byte{'{'}, meta, []byte{'}'}), ErrMetaJSON); err != nil {
			return err
		}
	}
	if digits, redacted := bytes.CutPrefix(s.rest(), []byte(commitMember)); redacted {
		return checkJSON(digits[64+len(keptMember):], ErrKeptJSON)
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
