package event

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/convlog/convlog/internal/line"
)

// Hash is a link of the hash chain: it commits to an event and its whole past.
// The zero Hash is before the first event.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText is 64 lower-case hex digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads 64 lower-case hex digits.
func (h *Hash) UnmarshalText(text []byte) error {
	parsed, ok := line.ParseHash(string(text))
	if !ok {
		return fmt.Errorf("not a hash: %q", line.Clip(string(text)))
	}
	*h = Hash(parsed)
	return nil
}

// Digest names bytes by their content: "sha256:" and 64 lower-case hex digits.
type Digest string

// DigestOf is the digest of b.
func DigestOf(b []byte) Digest { return Digest(line.Digest(sha256.Sum256(b))) }

// Check returns ErrInvalidBlob for a malformed digest.
func (d Digest) Check() error {
	if !d.valid() {
		return fmt.Errorf("%w: not a digest: %q", ErrInvalidBlob, line.Clip(string(d)))
	}
	return nil
}

// Hex is the digest without its prefix; empty if the digest is malformed.
func (d Digest) Hex() string {
	if !d.valid() {
		return ""
	}
	return string(d[len(line.DigestPrefix):])
}

func (d Digest) valid() bool {
	_, ok := line.DigestSum(string(d))
	return ok
}

// Head is the position of a session's newest event. The next append expects it. The
// zero Head is a missing session. The hash distinguishes the head of a removed
// session from the head of a new session with the same id.
type Head struct {
	Seq  int64
	Hash Hash
}

// IsZero reports whether h is the head of a missing session.
func (h Head) IsZero() bool { return h == Head{} }

func (h Head) String() string {
	if h.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%d:%s", h.Seq, h.Hash.String()[:12])
}
