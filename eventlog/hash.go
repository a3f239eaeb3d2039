package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Hash is a link of the hash chain: it commits to an event and its whole past.
// The zero Hash stands before the first event.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads 64 lower-case hex digits.
func ParseHash(text string) (Hash, error) {
	var h Hash
	if len(text) != 2*len(h) || !decodeHex(h[:], text) {
		return Hash{}, fmt.Errorf("not a hash: %q", clip(text))
	}
	return h, nil
}

// MarshalText is 64 lower-case hex digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads 64 lower-case hex digits.
func (h *Hash) UnmarshalText(text []byte) error {
	parsed, err := ParseHash(string(text))
	if err != nil {
		return err
	}
	*h = parsed
	return nil
}

// Digest names bytes by their content: "sha256:" and 64 lower-case hex digits.
type Digest string

const digestPrefix = "sha256:"

// DigestOf is the digest of b.
func DigestOf(b []byte) Digest { return digestOfSum(sha256.Sum256(b)) }

func digestOfSum(sum [sha256.Size]byte) Digest {
	return Digest(digestPrefix + hex.EncodeToString(sum[:]))
}

// ParseDigest checks the form of a digest.
func ParseDigest(text string) (Digest, error) {
	if _, ok := Digest(text).sum(); !ok {
		return "", fmt.Errorf("not a digest: %q", clip(text))
	}
	return Digest(text), nil
}

// Hex is the digest without its prefix; empty when the digest is malformed.
func (d Digest) Hex() string {
	if _, ok := d.sum(); !ok {
		return ""
	}
	return string(d[len(digestPrefix):])
}

func (d Digest) sum() (sum [sha256.Size]byte, ok bool) {
	if len(d) != len(digestPrefix)+2*sha256.Size || d[:len(digestPrefix)] != digestPrefix {
		return sum, false
	}
	return sum, decodeHex(sum[:], d[len(digestPrefix):])
}

// Head is the position of a session's newest event: what the next append
// expects to find. The zero Head is a session that does not exist. The chain
// in Hash makes the head of a removed and recreated session differ.
type Head struct {
	Seq  int64
	Hash Hash
}

// IsZero reports whether h is the head of an absent session.
func (h Head) IsZero() bool { return h == Head{} }

func (h Head) String() string {
	if h.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%d:%s", h.Seq, h.Hash.String()[:12])
}

// hexValues holds the value of each lower-case hex digit, and 0xff for every
// other byte. Looking digits up costs far less than branching on the random
// ones of a hash.
var hexValues = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i, c := range []byte("0123456789abcdef") {
		values[c] = byte(i)
	}
	return values
}()

// decodeHex fills dst from lower-case hex digits; len(src) must be 2·len(dst).
func decodeHex[T ~string | []byte](dst []byte, src T) bool {
	bad := byte(0)
	for i := range dst {
		hi, lo := hexValues[src[2*i]], hexValues[src[2*i+1]]
		bad |= hi | lo
		dst[i] = hi<<4 | lo
	}
	return bad < 16
}

// isHex reports whether b consists of lower-case hex digits.
func isHex(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if !isHexWord(binary.LittleEndian.Uint64(b)) {
			return false
		}
	}
	bad := byte(0)
	for _, c := range b {
		bad |= hexValues[c]
	}
	return bad < 16
}

// isHexWord is isHex of eight bytes at once. A sum has a byte's high bit where
// the byte, below 0x80 itself, is not below the bound.
func isHexWord(w uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	digits := (w + each*(0x80-'0')) &^ (w + each*(0x80-'9'-1))
	letters := (w + each*(0x80-'a')) &^ (w + each*(0x80-'f'-1))
	return w&high == 0 && (digits|letters)&high == high
}

// clip shortens text quoted in an error.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
