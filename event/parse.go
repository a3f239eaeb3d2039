package event

import (
	"errors"

	"github.com/convlog/convlog/internal/line"
)

// knownTypes are the types of the vocabulary as strings, for parsed events to
// share.
var knownTypes = func() map[string]string {
	names := map[string]string{}
	for t := range vocabulary {
		names[string(t)] = string(t)
	}
	return names
}()

// FormatVersion is the version of the format that this package writes, and the
// highest that it reads.
const FormatVersion = line.Version

// Parse reads one line, without its newline, and checks its crc (docs/FORMAT.md,
// chapter 1). The event shares the bytes of text. A line of another session than
// session is an error, unless session is empty.
//
// ErrForeign means a JSON object that no log wrote, a *VersionError a line of a
// newer version. Any other error means damage.
func Parse(text []byte, session string) (Event, error) {
	var l line.Line
	if err := l.Parse(text, line.Strings{Session: session, Types: knownTypes}); err != nil {
		return Event{}, parseError(err)
	}
	var e Event
	e.fill(&l)
	return e, nil
}

// fill makes e the event of a line; see sealed.Fill.
func (e *Event) fill(l *line.Line) {
	*e = Event{
		Seq: l.Seq, ID: l.ID, SessionID: l.Session, Type: Type(l.Type), Timestamp: l.Timestamp, Cost: Cost(l.Cost),
		Metadata: l.Metadata, Data: l.Data, line: l.Sealed, more: l.More,
	}
	if l.HasRareMembers() {
		e.rare = rareOf(l)
	}
}

func rareOf(l *line.Line) *rare {
	r := &rare{
		cut: Cut{l.Cut.Bytes, Hash(l.Cut.SHA256)}, extras: l.Extras, digest: Digest(l.Digest), bytes: l.Bytes,
		kept: l.Kept, redacted: l.Redacted, verbatim: l.NotCanonical(),
	}
	for _, d := range l.Blobs {
		r.blobs = append(r.blobs, Digest(d))
	}
	return r
}

// parseError gives an envelope of a newer version the error of this package.
func parseError(err error) error {
	var version *line.VersionError
	if errors.As(err, &version) {
		return &VersionError{What: "envelope", Got: version.Got, Max: FormatVersion}
	}
	return err
}
