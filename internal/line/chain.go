package line

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Hash is a SHA-256 sum.
type Hash [sha256.Size]byte

// Link is what a line adds to the chain: H(header) and the commit.
type Link struct{ header, commit Hash }

// After is hash(n) = H(hash(n−1) ‖ H(header) ‖ commit).
func (l Link) After(prev Hash) Hash {
	var buf [3 * sha256.Size]byte
	copy(buf[:], prev[:])
	copy(buf[sha256.Size:], l.header[:])
	copy(buf[2*sha256.Size:], l.commit[:])
	return sha256.Sum256(buf[:])
}

// Link computes the line's link from its bytes.
func (l *Line) Link() Link {
	return Link{header: sha256.Sum256(l.Header()), commit: l.Commit()}
}

// Follows reports whether the line is chained to a line with that hash.
func (l *Line) Follows(prev Hash) bool { return l.Link().After(prev) == l.Hash() }

// Commit is H(salt ‖ H(meta) ‖ H(data)): computed from the content, or the value
// that a redacted line carries.
func (l *Line) Commit() (h Hash) {
	if l.Redacted {
		decodeHex(h[:], l.raw[l.at.commit:l.at.commit+64])
		return h
	}
	return commit(l.Salt(), sha256.Sum256(l.Meta()), l.dataSum())
}

// dataSum is H(data), which a spilled line names by its digest.
func (l *Line) dataSum() (sum Hash) {
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

// DigestPrefix begins every digest.
const DigestPrefix = "sha256:"

// DigestLen is the length of a digest.
const DigestLen = len(DigestPrefix) + 2*sha256.Size

// Digest names bytes by their content: "sha256:" and 64 lower-case hex digits.
func Digest(sum [sha256.Size]byte) string { return DigestPrefix + hex.EncodeToString(sum[:]) }

// DigestSum is the sum that a digest names; ok is false for a malformed digest.
func DigestSum(d string) (sum Hash, ok bool) {
	if len(d) != DigestLen || d[:len(DigestPrefix)] != DigestPrefix {
		return sum, false
	}
	return sum, decodeHex(sum[:], d[len(DigestPrefix):])
}

// Why a line does not follow from the line before it.
var (
	// ErrGap: seq is not the next one.
	ErrGap = errors.New("seq does not follow from the event before")
	// ErrChain: hash is not computed from the hash before.
	ErrChain = errors.New("hash does not follow from the event before")
	// ErrCountdown: more does not count down within an append.
	ErrCountdown = errors.New("more does not count down within the append")
	// ErrUnended: the last append lacks lines.
	ErrUnended = errors.New("the last append is incomplete")
)

// Sequence checks that lines of one session follow each other: their seqs, their
// chain, and the countdown of more within an append. It holds the last line.
type Sequence struct {
	Seq  int64
	Hash Hash
	More int32
}

// Next checks the next line by its facts, and makes it the last one if it follows.
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

// End checks that the last append is complete.
func (s *Sequence) End() error {
	if s.More > 0 {
		return ErrUnended
	}
	return nil
}
