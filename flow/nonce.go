package flow

import (
	"crypto/rand"
	"encoding/hex"
)

// newNonce makes the nonce of an effect: 32 random hex digits.
func newNonce() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}
