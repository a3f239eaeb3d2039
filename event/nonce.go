package event

import (
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// nonceBytes is the number of random bytes of a nonce.
const nonceBytes = 16

// ArgumentsDigest is the digest of the arguments of an effect: of the nonce's digits and
// the compact JSON of the arguments. Redaction erases the nonce, so that the digest
// tells nothing of the arguments. Malformed arguments are ErrInvalidData.
func ArgumentsDigest(nonce string, arguments jsontext.Value) (Digest, error) {
	compact, err := rawjson.Compact(arguments)
	if err != nil {
		return "", fmt.Errorf("%w: arguments: %w", ErrInvalidData, err)
	}
	return DigestOf(append([]byte(nonce), compact...)), nil
}

// requireNonce accepts a nonce, and a digest that has one.
func requireNonce(nonce string, digest Digest) error {
	random, err := hex.DecodeString(nonce)
	switch {
	case nonce != "" && (err != nil || len(random) != nonceBytes || hex.EncodeToString(random) != nonce):
		return fmt.Errorf("%w: nonce is not 32 lower-case hex digits", ErrInvalidPayload)
	case nonce == "" && digest != "":
		return fmt.Errorf("%w: arguments_digest has no nonce", ErrInvalidPayload)
	}
	return requireDigest("arguments_digest", digest)
}
