package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// View returns a store that shows the sessions of another one with masks in the place of
// secrets: in events, in listings, in the results of searches and in bodies of text. The
// log over a view, its projections and its exports then have no secret that the scanner
// finds, except in structural members (event.Type.Structural). Ids, seqs and hashes stay the same. The stored lines (event.Event.Line) have no
// masks. A load skips a snapshot whose state is a blob or has a secret, and folds the events.
//
// A view is for reading: appends are eventlog.ErrReadOnly, and abilities that change or
// copy the store are missing. Closing the view closes the store.
func View(store eventlog.Store, s *Scanner) eventlog.Store {
	v := view{log: eventlog.Open(store), store: store, scanner: s}
	if index, ok := eventlog.As[eventlog.Searcher](store); ok {
		return &searchedView{v, index}
	}
	return &v
}

type view struct {
	log     *eventlog.Log // over store
	store   eventlog.Store
	scanner *Scanner
}

func (v *view) Append(context.Context, string, event.Head, []event.Event, bool) error {
	return fmt.Errorf("append to a view with masks: %w", eventlog.ErrReadOnly)
}

func (v *view) Close() error { return v.log.Close() }

func (v *view) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return v.events(ctx, v.store.Read(ctx, session, r))
}

// events masks the secrets of events.
func (v *view) events(ctx context.Context, events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			if err == nil {
				err = v.mask(ctx, &e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// mask masks the secrets of one event, and fetches its data before.
func (v *view) mask(ctx context.Context, e *event.Event) error {
	if digest, _, spilled := e.Spilled(); spilled && e.Data == nil {
		data, err := v.read(ctx, digest)
		if errors.Is(err, eventlog.ErrBlobNotFound) {
			return nil // the log reports it, if the caller needs the data
		}
		if err != nil {
			return fmt.Errorf("data of event %d of session %q: %w", e.Seq, e.SessionID, err)
		}
		e.Data = data
	}
	x, err := v.scanner.screen(e.SessionID, e)
	if err != nil || len(x.found) == 0 {
		return err
	}
	e.Data, e.Metadata = x.data, x.metadata
	if x.extras != nil {
		return e.SetExtras(x.extras)
	}
	return nil
}

func (v *view) read(ctx context.Context, d event.Digest) (jsontext.Value, error) {
	body, err := v.log.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	return data, errors.Join(err, body.Close())
}

func (v *view) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		for info, err := range v.store.Sessions(ctx) {
			for _, e := range []*event.Event{&info.First, &info.Last} {
				if err == nil && info.Err == nil && e.Seq > 0 {
					info.Err = v.mask(ctx, e)
				}
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// OpenBlob opens a body with masks, if it is text.
func (v *view) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	body, err := v.log.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	masked := newBodyReader(v.scanner, body, true, func(string) error { return nil })
	return struct {
		io.Reader
		io.Closer
	}{masked, body}, nil
}

// ChecksDigests marks that OpenBlob has compared the digest of the stored bytes.
func (v *view) ChecksDigests() {}

func (v *view) PutBlob(context.Context, io.Reader) (event.Digest, int64, error) {
	return "", 0, fmt.Errorf("put a blob into a view with masks: %w", eventlog.ErrReadOnly)
}

func (v *view) RemoveBlobs(context.Context, []event.Digest) error {
	return fmt.Errorf("remove blobs of a view with masks: %w", eventlog.ErrReadOnly)
}

func (v *view) ListBlobs(ctx context.Context) iter.Seq2[eventlog.BlobInfo, error] {
	blobs, ok := eventlog.As[eventlog.Blobs](v.store)
	if !ok {
		return func(yield func(eventlog.BlobInfo, error) bool) {
			yield(eventlog.BlobInfo{}, fmt.Errorf("list blobs: %w", eventlog.ErrUnsupported))
		}
	}
	return blobs.ListBlobs(ctx)
}

// searchedView is a view of a store with an index.
type searchedView struct {
	view
	index eventlog.Searcher
}

func (v *searchedView) Search(ctx context.Context, terms []string, session string, to int64) iter.Seq2[eventlog.Candidates, error] {
	return func(yield func(eventlog.Candidates, error) bool) {
		for c, err := range v.index.Search(ctx, terms, session, to) {
			if err == nil {
				c.Events = v.events(ctx, c.Events)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

func (v *searchedView) Index(context.Context, bool) error {
	return fmt.Errorf("index a view with masks: %w", eventlog.ErrReadOnly)
}
