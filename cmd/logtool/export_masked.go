package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/sessiontree"
	"github.com/convlog/convlog/secrets"
	"github.com/convlog/convlog/upkeep/transfer"
)

// exportMaskedBundle writes a bundle with masks: its sessions have new ids and hashes.
func (a *app) exportMaskedBundle(ctx context.Context, log *eventlog.Log, args []string, x exportOptions) error {
	sessions, err := a.sessions(ctx, log, args, x.all)
	if err != nil {
		return err
	}
	sessions = slices.DeleteFunc(sessions, func(id string) bool { return id == engine.StoreSession })
	shown := log
	if x.secrets {
		if shown, err = maskSecretsEverywhere(log); err != nil {
			return err
		}
	}
	if shown, err = maskTexts(shown, x.texts); err != nil {
		return err
	}
	var m placeMask
	if x.paths {
		all, err := familyOf(ctx, log, sessions)
		if err == nil {
			m, err = maskPaths(ctx, shown, all)
		}
		if err != nil {
			return err
		}
		shown = m.log
	}
	var ids map[string]string
	var missing []string
	err = a.output(x.file, func(w io.Writer) (err error) {
		packed := gzip.NewWriter(w)
		ids, missing, err = transfer.ExportMasked(ctx, log, shown, packed, sessions...)
		return errors.Join(err, packed.Close())
	})
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		a.note("not exported: %s that this store does not have: %s", count(len(missing), "child session"), clean(strings.Join(missing, ", ")))
	}
	names := make([]string, 0, len(sessions))
	for _, session := range sessions {
		names = append(names, fmt.Sprintf("%s is %s", session, ids[session]))
	}
	a.note("the bundle has %s under new ids: %s", count(len(ids), "session"), clean(someOf(names, 20)))
	if x.paths {
		a.masked(&m, "read the bundle before you share it (import it into another store): names of other people, hosts, repositories and folders below ~ are left")
	}
	return nil
}

// maskSecretsEverywhere returns a view of a log with masks in the place of secrets, also in the
// names and ids that other events refer to.
func maskSecretsEverywhere(log *eventlog.Log) (*eventlog.Log, error) {
	rules := secrets.Rules()
	for i := range rules {
		rules[i].Mask = "[secret:" + rules[i].Name + "]"
	}
	scanner, err := secrets.New(rules...)
	if err != nil {
		return nil, err
	}
	return eventlog.Open(secrets.View(log.Store(), scanner)), nil
}

// familyOf are sessions, the sessions below them, and their ancestors.
func familyOf(ctx context.Context, log *eventlog.Log, sessions []string) ([]string, error) {
	tree, err := sessiontree.Load(ctx, log, sessions...)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for i := range tree.Sessions {
		id := tree.Sessions[i].Session
		all[id] = true
		for parent, err := range log.Ancestors(ctx, id) {
			if err != nil {
				return nil, err
			}
			all[parent.Session] = true
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}
