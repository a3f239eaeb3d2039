package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/transfer"
)

func (a *app) convertCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "convert SRC DST [SESSION...]",
		Short: "Copy a log into another store, lines and blobs verbatim",
		Long: `Copy every session of SRC, or those named, into DST, both named as --store names
a store. Lines are verified and kept byte for byte, forks, orphaned events,
snapshots and blobs with them; what a fork rests on comes before it, also where
only the fork is named. What DST has already is left alone, so a second run
copies nothing.`,
		Example: "  logtool convert ~/logs sessions.db\n  logtool convert sessions.db ~/some order-42 8b21",
		Args:    between(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, dst, err := twoPlaces(args[0], args[1])
			if err != nil {
				return err
			}
			src.wait, dst.wait = a.wait, a.wait
			return src.with(forReading, func(from *eventlog.Log) error {
				sessions, err := a.sessions(cmd.Context(), from, args[2:], false)
				if err != nil {
					return err // before the other store is made
				}
				return dst.with(forWriting, func(to *eventlog.Log) error { return a.convert(cmd.Context(), to, from, sessions) })
			})
		},
	}
}

func twoPlaces(from, to string) (src, dst place, err error) {
	src, err = parsePlace(from, isFile, isDir)
	if err != nil {
		return src, dst, err
	}
	dst, err = parsePlace(to, isFile, isDir)
	if err != nil {
		return src, dst, err
	}
	if filepath.Clean(src.path) == filepath.Clean(dst.path) {
		err = usagef("source and destination are the same store: %s", src)
	}
	return src, dst, err
}

// converted is a session as convert prints it with --json.
type convertRow struct {
	Session string `json:"session"`
	Read    int64  `json:"read"`
	Stored  int64  `json:"stored"`
	Seq     int64  `json:"seq"`
	Hash    string `json:"hash"`
	Error   string `json:"error,omitzero"`
}

func (a *app) convert(ctx context.Context, to, from *eventlog.Log, names []string) error {
	p := a.printer()
	var read, stored int64
	whole := map[string]int64{} // the events of each session, which may come again
	var failed []error
	for s, err := range transfer.Convert(ctx, to, from, names...) {
		row := convertRow{Session: s.Session, Read: s.Read, Stored: s.Stored, Seq: s.Head.Seq, Hash: s.Head.Hash.String()}
		if err != nil {
			failed, row.Error = append(failed, err), err.Error()
		} else {
			read, stored = read+s.Read-whole[s.Session], stored+s.Stored
			whole[s.Session] = s.Read
		}
		if a.json {
			if err := p.value(row); err != nil {
				return err
			}
		}
	}
	if !a.json {
		if len(failed) > 1 {
			for _, err := range failed {
				p.printf("stopped: %s\n", clean(strings.TrimPrefix(err.Error(), "convert: ")))
			}
		}
		p.printf("%s, %s: %s stored\n", count(int64(len(whole)), "session"), count(read, "event"), thousands(stored))
	}
	if err := p.flush(); err != nil && len(failed) == 0 {
		return err
	}
	return convertError(failed)
}

// convertError is what a run failed with: the one error, or what was listed.
func convertError(failed []error) error {
	err := errors.Join(failed...)
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case len(failed) == 1:
		return copyError{failed[0]}
	}
	text := count(int64(len(failed)), "session") + " could not be copied, as listed; the rest is"
	if errors.Is(err, eventlog.ErrConflict) {
		text += "; copy what has another history there into another store"
	}
	if errors.Is(err, eventlog.ErrCorrupt) || !errors.Is(err, eventlog.ErrConflict) {
		text += "; logtool verify shows all damage, logtool repair saves what can be read"
	}
	return errors.New(text)
}
