package secrets

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/mark"
)

// Located says where a secret is. It never has the secret.
type Located struct {
	// Session is empty for a body that no event refers to yet.
	Session string
	// Seq is 0 before the event is stored.
	Seq  int64
	Type event.Type
	// Member is the place in the event: "data", "metadata" or "extra" with a JSON
	// pointer, for example data/parts/0/text, or "blob" with a digest.
	Member string
	Rule   string
	// Unmasked is true if Mask or View left the secret, because the member is
	// structural: other events refer to it.
	Unmasked bool
}

func (l Located) String() string {
	text := ""
	if l.Session != "" {
		text = fmt.Sprintf("session %q: ", l.Session)
	}
	if l.Seq > 0 {
		text += fmt.Sprintf("event %d ", l.Seq)
	}
	if l.Type != "" {
		text += fmt.Sprintf("(%s): ", l.Type)
	}
	return text + l.Member + ": " + l.Rule
}

// errOpaque reports data that is not JSON, so that its strings cannot be read.
var errOpaque = errors.New("not JSON")

// screened are the parts of an event with masks, and the places of the secrets.
type screened struct {
	data, metadata, extras jsontext.Value
	found                  []Located
}

// screen finds the secrets of an event, whose data is fetched. It does not change e.
func (s *Scanner) screen(session string, e *event.Event) (x screened, err error) {
	x = screened{data: e.Data, metadata: e.Metadata}
	part := func(name string, value jsontext.Value, leave func(jsontext.Pointer) bool) jsontext.Value {
		if len(value) == 0 || err != nil {
			return value
		}
		if s.everywhere {
			leave = func(jsontext.Pointer) bool { return false }
		}
		masked, failed := s.maskJSON(value, leave, func(f inJSON) {
			for _, rule := range f.rules {
				x.found = append(x.found, Located{session, e.Seq, e.Type, name + f.pointer, rule, f.left})
			}
		})
		if failed != nil {
			err = fmt.Errorf("%w: %s: %w", errOpaque, name, failed)
		}
		return masked
	}
	x.data = part("data", e.Data, e.Type.Structural)
	x.metadata = part("metadata", e.Metadata, ofTheLog)
	if extras := e.Extras(); len(extras) > 0 {
		x.extras = part("extra", slices.Concat([]byte("{"), extras, []byte("}")), func(jsontext.Pointer) bool { return false })
	}
	return x, err
}

// ofTheLog reports whether a pointer leads into a member of the metadata that the log
// knows (docs/FORMAT.md, chapter 7). Its strings are paths, ids, digests and rules.
func ofTheLog(pointer jsontext.Pointer) bool {
	for name := range pointer.Tokens() {
		return slices.Contains([]string{"origin", "fork_origin", "copy_of", mark.Broken, mark.Repaired, mark.Masked}, name)
	}
	return false
}

// apply gives e the parts with masks, and the rules of the masks.
func (x *screened) apply(e *event.Event) error {
	e.Data, e.Metadata = x.data, x.metadata
	if x.extras != nil {
		if err := e.SetExtras(x.extras); err != nil {
			return err
		}
	}
	for _, f := range x.found {
		if f.Unmasked {
			continue
		}
		if err := e.MarkMasked(f.Rule); err != nil {
			return err
		}
	}
	return nil
}
