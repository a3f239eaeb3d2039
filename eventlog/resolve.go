package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

// AmbiguousError lists the ids that begin with a prefix, sorted. Use one of them.
type AmbiguousError struct {
	Prefix   string
	Sessions []string
}

func (e *AmbiguousError) Error() string {
	const most = 5
	shown := e.Sessions[:min(len(e.Sessions), most)]
	text := fmt.Sprintf("%q fits %d sessions: %s", e.Prefix, len(e.Sessions), strings.Join(shown, ", "))
	if len(e.Sessions) > most {
		text += ", …"
	}
	return text
}

// Resolve returns the id of the session with that id or, if there is no such session,
// of the only session whose id begins with prefix, except convlog:store. No session is ErrNotFound; several
// sessions are an *AmbiguousError.
func (l *Log) Resolve(ctx context.Context, prefix string) (string, error) {
	if _, err := l.Head(ctx, prefix); err == nil {
		return prefix, nil
	} else if !errors.Is(err, ErrNotFound) && !errors.Is(err, event.ErrInvalidSession) && !errors.Is(err, ErrCorrupt) {
		return "", err
	}
	var found []string
	for info, err := range l.List(ctx, Part{Prefix: prefix}) {
		if err != nil {
			return "", err
		}
		if info.ID == prefix {
			return prefix, nil
		}
		if info.ID != engine.StoreSession { // only its whole id names the notes of the store
			found = append(found, info.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("session %q: %w", prefix, ErrNotFound)
	case 1:
		return found[0], nil
	default:
		slices.Sort(found)
		return "", &AmbiguousError{Prefix: prefix, Sessions: found}
	}
}
