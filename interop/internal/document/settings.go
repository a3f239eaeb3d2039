package document

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Settings are what stood around the items of a session whenever it was imported,
// by their digests.
type Settings map[event.Digest]bool

// Know reports whether they are known, and are from then on. No settings are.
func (s Settings) Know(settings jsontext.Value) (known bool, err error) {
	if len(settings) == 0 {
		return true, nil
	}
	d, err := projection.CanonicalDigest(settings)
	if err != nil {
		return false, err
	}
	known = s[d]
	s[d] = true
	return known, nil
}
