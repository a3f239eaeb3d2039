package flow

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// minKey is the least length of a key for tokens, in bytes.
const minKey = 32

// tokenVersion is the newest version of tokens.
const tokenVersion = 1

// Ref names a session, and a snapshot or a wait of it.
type Ref struct {
	Session  string `json:"session"`
	Snapshot string `json:"snapshot,omitzero"`
	Wait     string `json:"wait,omitzero"`
}

// Token encodes a reference to a snapshot or a wait as a text. With a key of at least 32
// bytes the token is signed (HMAC-SHA256); without one it is not.
func (r Ref) Token(key []byte) (string, error) {
	if r.Wait != "" {
		return encodeToken("wait", r, key)
	}
	return encodeToken("snapshot", r, key)
}

// ParseToken decodes a token of Ref.Token or of a Pending. With a key it accepts signed
// tokens only. The error is ErrToken or a *event.VersionError.
func ParseToken(token string, key []byte) (r Ref, err error) {
	wait := strings.HasPrefix(token, "convlog:wait:")
	if wait {
		err = decodeToken("wait", token, key, &r)
	} else {
		err = decodeToken("snapshot", token, key, &r)
	}
	if err == nil && (r.Session == "" || (r.Wait != "") != wait || (r.Snapshot != "") == wait) {
		err = fmt.Errorf("%w: it names no session, or neither a snapshot nor a wait", ErrToken)
	}
	return r, err
}

// encodeToken makes "convlog:KIND:v1:BODY" or "convlog:KIND:v1:BODY.SIGNATURE".
func encodeToken(kind string, value any, key []byte) (string, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	token := "convlog:" + kind + ":v" + strconv.Itoa(tokenVersion) + ":" + base64.RawURLEncoding.EncodeToString(body)
	if len(key) == 0 {
		return token, nil
	}
	signature, err := sign(token, key)
	return token + "." + signature, err
}

func sign(text string, key []byte) (string, error) {
	if len(key) < minKey {
		return "", fmt.Errorf("%w: the key has %d bytes, and at least %d are needed", ErrToken, len(key), minKey)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)), nil
}

func decodeToken(kind, token string, key []byte, to any) error {
	rest, ok := strings.CutPrefix(token, "convlog:"+kind+":v")
	if !ok {
		return fmt.Errorf("%w: it does not begin with convlog:%s:v", ErrToken, kind)
	}
	digits, body, ok := strings.Cut(rest, ":")
	version, err := strconv.Atoi(digits)
	if !ok || err != nil || version < 1 || strconv.Itoa(version) != digits {
		return fmt.Errorf("%w: it has no version", ErrToken)
	}
	if version > tokenVersion {
		return &event.VersionError{What: kind + " token", Got: version, Max: tokenVersion}
	}
	body, signature, signed := strings.Cut(body, ".")
	if len(key) > 0 {
		if err := checkSignature(strings.TrimSuffix(token, "."+signature), signature, signed, key); err != nil {
			return err
		}
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err == nil {
		err = json.Unmarshal(raw, to, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrToken, err)
	}
	return nil
}

func checkSignature(text, signature string, signed bool, key []byte) error {
	want, err := sign(text, key)
	if err != nil {
		return err
	}
	if !signed {
		return fmt.Errorf("%w: it is not signed", ErrToken)
	}
	if !hmac.Equal([]byte(want), []byte(signature)) {
		return fmt.Errorf("%w: the signature does not match the key", ErrToken)
	}
	return nil
}
