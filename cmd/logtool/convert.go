package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
)

func (a *app) convertCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "convert SRC DST",
		Short: "Copy a whole log into another store, lines and blobs verbatim",
		Long: `Copy every session and blob of SRC into DST, both named as --store names a
store. Lines are verified and kept byte for byte, parents before their forks.
What DST has already is left alone, so a second run copies nothing.`,
		Example: "  logtool convert ~/logs sessions.db",
		Args:    between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, dst, err := twoPlaces(args[0], args[1])
			if err != nil {
				return err
			}
			return src.with(forReading, func(from *eventlog.Log) error {
				return dst.with(forWriting, func(to *eventlog.Log) error { return a.convert(cmd.Context(), to, from) })
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
type converted struct {
	Session string `json:"session"`
	Read    int64  `json:"read"`
	Stored  int64  `json:"stored"`
	Seq     int64  `json:"seq"`
	Hash    string `json:"hash"`
}

func (a *app) convert(ctx context.Context, to, from *eventlog.Log) error {
	p := a.printer()
	var sessions, read, stored int64
	var failed error
	for s, err := range eventlog.Convert(ctx, to, from) {
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		sessions, read, stored = sessions+1, read+s.Read, stored+s.Stored
		if a.json {
			if err := p.value(converted{s.Session, s.Read, s.Stored, s.Head.Seq, s.Head.Hash.String()}); err != nil {
				return err
			}
		}
	}
	if !a.json {
		p.printf("%s, %s: %s stored\n", count(sessions, "session"), count(read, "event"), thousands(stored))
	}
	if err := p.flush(); err != nil && failed == nil {
		return err
	}
	return failed
}
