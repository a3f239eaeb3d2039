package genkit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// member is the name under which this package stores its own data in extra and metadata.
const member = "genkit"

const (
	sessionPrefix = "genkit/"           // genkit/SESSION
	indexPrefix   = "genkit:snapshots/" // the sessions of snapshots, by two digits of the hash of the snapshot's id
)

// logIDOf is the id in the log of a session. The id of a long name ends with "~" and a hash of the name; no other id has a "~".
func logIDOf(sessionID string) string {
	id := sessionPrefix + strings.ReplaceAll(url.PathEscape(sessionID), "~", "%7E")
	if len(id) <= 200 {
		return id
	}
	sum := sha256.Sum256([]byte(sessionID))
	return id[:150] + "~" + hex.EncodeToString(sum[:16])
}

// sessionName is the name of a fork: the id in the log, without the prefix if it has one.
func sessionName(logID string) string {
	name, ok := strings.CutPrefix(logID, sessionPrefix)
	if unescaped, err := url.PathUnescape(name); ok && err == nil {
		return unescaped
	}
	return logID
}

func sessionMetadata(sessionID string) jsontext.Value {
	raw, _ := json.Marshal(map[string]any{member: map[string]string{"session": sessionID}}) // a string
	return raw
}

// locate returns the id in the log of a session. A fork may have any id: its first ancestor is a session of Genkit.
func (s *Store[S]) locate(ctx context.Context, sessionID string) (string, error) {
	logID := logIDOf(sessionID)
	if _, err := s.log.Head(ctx, logID); !errors.Is(err, eventlog.ErrNotFound) {
		return logID, err
	}
	if event.CheckSessionID(sessionID) != nil { // no fork has this id
		return logID, nil
	}
	for first, err := range s.log.Read(ctx, sessionID, eventlog.Between(1, 1).Bare()) {
		if err == nil && first.SessionID != sessionID && strings.HasPrefix(first.SessionID, sessionPrefix) {
			return sessionID, nil
		}
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			return "", err
		}
		break
	}
	return logID, nil
}

// The index finds the session of a snapshot. Each of its sessions has a custom state: the ids in the log by the ids of snapshots. An
// entry is written before its snapshot, so a process that is killed leaves an entry without a snapshot.

func indexOf(snapshotID string) string {
	sum := sha256.Sum256([]byte(snapshotID))
	return indexPrefix + hex.EncodeToString(sum[:1])
}

// entries are the entries of a session of the index.
func (s *Store[S]) entries(ctx context.Context, index string) (all map[string]string, head event.Head, err error) {
	view, err := projection.Load(ctx, s.log, index, projection.Custom())
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil, event.Head{}, nil
	}
	if err == nil {
		err = json.Unmarshal(view.State.Get(member).Raw(), &all)
	}
	return all, view.Head, err
}

// sessionOf returns the id in the log of the session of a snapshot; "" if it is not known.
func (s *Store[S]) sessionOf(ctx context.Context, snapshotID string) (string, error) {
	all, _, err := s.entries(ctx, indexOf(snapshotID))
	return all[snapshotID], err
}

var indexStates = projection.Of("", projection.Custom())

// register adds an entry to the index.
func (s *Store[S]) register(ctx context.Context, snapshotID, logID string) error {
	index := indexOf(snapshotID)
	for {
		all, head, err := s.entries(ctx, index)
		if err != nil || all[snapshotID] == logID {
			return err
		}
		path, value := "/"+pointer.Replace(snapshotID), any(logID)
		if all == nil {
			path, value = "", map[string]string{snapshotID: logID}
		}
		raw, err := marshal([]map[string]any{{"op": "add", "path": path, "value": value}})
		if err != nil {
			return err
		}
		events := []event.Event{event.New(event.CustomPatch{Name: member, Patch: raw})}
		if head.IsZero() {
			events = append([]event.Event{event.New(event.Session{State: true})}, events...)
		}
		var after event.Head
		err = eventlog.UntilKnown(ctx, func() (err error) {
			after, err = s.log.Append(ctx, index, eventlog.At(head), events...)
			return err
		})
		if errors.Is(err, eventlog.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("add snapshot %q to the index: %w", snapshotID, err)
		}
		snapshot(ctx, s.log, index, indexStates, head, after)
		return nil
	}
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// marshal encodes v as encoding/json does, without escapes for HTML.
func marshal(v any) (jsontext.Value, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
