package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/postgres"
)

// serverTarget is a schema of a server that a backup writes. The schema has another name
// until the backup is complete.
type serverTarget struct {
	place
	store   *postgres.Store // of the partial schema
	schema  string          // the name of the complete one
	partial string
}

// partialSchema ends the name of the schema of an incomplete backup.
const partialSchema = "_partial"

// newServerTarget rejects a target that is the store itself.
func newServerTarget(src, at place) (*serverTarget, error) {
	if src.same(at) {
		return nil, usagef("the target is the store itself: %s", src)
	}
	store, err := postgres.New(at.path)
	if err != nil {
		return nil, err
	}
	t := &serverTarget{place: at, schema: store.Schema(), partial: store.Schema() + partialSchema}
	dsn, err := url.Parse(at.path)
	if err != nil {
		return nil, usagef("%s is not a URL", at)
	}
	options := dsn.Query()
	options.Set("schema", t.partial)
	dsn.RawQuery = options.Encode()
	t.store, err = postgres.New(dsn.String(), postgres.Options{MustCreate: true, LockTimeout: at.wait})
	return t, errors.Join(err, store.Close())
}

// create makes the partial schema. It fails if the target has a log, or if another backup
// uses the target.
func (t *serverTarget) create(ctx context.Context) error {
	present, err := postgres.New(t.path, postgres.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	log := eventlog.Open(present)
	err = errors.Join(log.Ping(ctx), log.Close())
	switch {
	case err == nil:
		return usagef("%s has a log already: name a new schema with ?schema=NAME", t)
	case !errors.Is(err, postgres.ErrNoLog):
		return fmt.Errorf("back up to %s: %w", t, err)
	}
	err = eventlog.Open(t.store).Ping(ctx)
	if errors.Is(err, postgres.ErrExists) {
		err = fmt.Errorf("schema %q exists: another backup is running, or was interrupted; if none is running, drop the schema and try again", t.partial)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("back up to %s: %w", t, err), t.store.Close())
	}
	return nil
}

// fill runs f on a log in the partial schema.
func (t *serverTarget) fill(f func(*eventlog.Log) error) error { return f(eventlog.Open(t.store)) }

// finish gives the schema its name.
func (t *serverTarget) finish(ctx context.Context) error {
	err := errors.Join(t.store.Rename(ctx, t.schema), t.store.Close())
	if err != nil {
		return fmt.Errorf("all is copied to schema %q, which cannot become %q: %w", t.partial, t.schema, err)
	}
	return nil
}

// dropTime bounds the removal of an incomplete backup after an interrupt.
const dropTime = 30 * time.Second

// discard removes the partial schema.
func (t *serverTarget) discard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime)
	defer cancel()
	err := errors.Join(t.store.Drop(ctx), t.store.Close())
	if err != nil {
		return fmt.Errorf("remove the incomplete backup, schema %q: %w", t.partial, err)
	}
	return nil
}
