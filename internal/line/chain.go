package line

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Hash is a SHA-256 sum.
type Hash [sha256.Size]byte

// Link has the parts of a line that its hash covers: H(header) and the commit.
type Link struct{ header, commit Hash }

// After returns hash(n) = H(hash(n−1) ‖ H(header) ‖ commit), given prev = hash(n−1).
func (l Link) After(prev Hash) Hash {
	var buf [3 * sha256.Size]byte
	copy(buf[:], prev[:])
	copy(buf[sha256.Size:], l.header[:])
	copy(buf[2*sha256.Size:], l.commit[:])
	return sha256.Sum256(buf[:])
}

// dataHash returns H(data). The digest of a spilled line is the same hash.
func (l *Line) dataHash() (sum Hash) {
	if l.Digest != "" {
		sum, _ = DigestSum(l.Digest)
		return sum
	}
	return sha256.Sum256(l.Data)
}

func commit(salt [16]byte, meta, data Hash) Hash {
	var buf [16 + 2*sha256.Size]byte
	copy(buf[:], salt[:])
	copy(buf[16:], meta[:])
	copy(buf[16+sha256.Size:], data[:])
	return sha256.Sum256(buf[:])
}

// DigestPrefix is the start of every digest.
const DigestPrefix = "sha256:"

// DigestLen is the length of a digest in bytes.
const DigestLen = len(DigestPrefix) + 2*sha256.Size

// Digest returns the digest of bytes with a SHA-256 sum: "sha256:" and 64 lower-case
// hex digits.
func Digest(sum [sha256.Size]byte) string { return DigestPrefix + hex.EncodeToString(sum[:]) }

// DigestSum returns the SHA-256 sum in a digest. ok is false for a malformed digest.
func DigestSum(d string) (sum Hash, ok bool) {
	if len(d) != DigestLen || d[:len(DigestPrefix)] != DigestPrefix {
		return sum, false
	}
	return sum, decodeHex(sum[:], d[len(DigestPrefix):])
}

// Errors of a line that does not follow from the line before it.
var (
	// ErrGap: seq is not the next seq.
	ErrGap = errors.New("seq is not the seq after the previous event")
	// ErrChain: the line's hash does not follow from the previous hash.
	ErrChain = errors.New("hash does not follow from the previous event")
	// ErrCountdown: more does not count down within an append.
	ErrCountdown = errors.New("more does not count down within the append")
	// ErrIncomplete: lines of the last append are missing.
	ErrIncomplete = errors.New("the last append is incomplete")
)

// Sequence checks that lines of one session follow each other: their seqs, their
// chain, and the countdown of more within an append. Its fields describe the last
// line.
type Sequence struct {
	Seq  int64
	Hash Hash
	More int32
}

// Next checks the next line. If the line follows, it becomes the last line.
func (s *Sequence) Next(seq int64, more int32, link Link, hash Hash) error {
	switch {
	case seq != s.Seq+1:
		return ErrGap
	case link.After(s.Hash) != hash:
		return ErrChain
	case s.More > 0 && more != s.More-1:
		return ErrCountdown
	}
	*s = Sequence{seq, hash, more}
	return nil
}

// End returns ErrIncomplete if the last append is incomplete.
func (s *Sequence) End() error {
	if s.More > 0 {
		return ErrIncomplete
	}
	return nil
}
