package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/transfer"
)

func (a *app) convertCommand() *cobra.Command {
	var apply bool
	cmd := a.command(&cobra.Command{
		Use:   "convert SRC DST [SESSION...]",
		Short: "Copy a log into another store, lines and blobs verbatim",
		Long: `Copy every session of the store SRC, or the sessions named, into the store DST.
Both are written like the value of --store. Lines are verified and kept byte for
byte. Forks, orphaned events, snapshots and blobs are copied too, and the parents of
a fork before the fork, also if only the fork is named. Events that DST has already
are skipped, so a second run copies nothing. What is erased in DST stays erased.

A session in which DST has in full what SRC has erased is left as it is, and reported.
With --apply-redactions it is erased in DST too. A session that is damaged in DST is
reported, and not mended: remove it there first.`,
		Example: "  logtool store convert sessions.db ~/some order-42 8b21",
		Args:    between(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := a.placeNamed(args[0])
			if err != nil {
				return err
			}
			dst, err := a.otherPlace(src, args[1])
			if err != nil {
				return err
			}
			return src.with(forReading, func(from *eventlog.Log) error {
				sessions, err := a.sessions(cmd.Context(), from, args[2:], false)
				if err != nil {
					return err // before the other store is created
				}
				return dst.with(forWriting, func(to *eventlog.Log) error {
					return a.convert(cmd.Context(), to, from, transfer.Options{Sessions: sessions, ApplyRedactions: apply})
				})
			})
		},
	}, traits{verb: "copying", args: []argument{storeArg, storeArg, sessionArg, more}})
	cmd.Flags().BoolVar(&apply, "apply-redactions", false, "erase events that the source has redacted")
	return cmd
}

// otherPlace is the destination store that text names. It rejects the source.
func (a *app) otherPlace(src place, text string) (place, error) {
	dst, err := a.placeNamed(text)
	if err == nil && src.same(dst) {
		err = usagef("source and destination are the same store: %s", src)
	}
	return dst, err
}

// convertRow is a session that convert or backup copied, with --json.
type convertRow struct {
	Session string `json:"session"`
	Read    int64  `json:"read"`
	Stored  int64  `json:"stored"`
	Seq     int64  `json:"seq"`
	Hash    string `json:"hash"`
	Error   string `json:"error,omitzero"`
}

func newConvertRow(s transfer.Result, err error) convertRow {
	row := convertRow{Session: s.Session, Read: s.Read, Stored: s.Stored, Seq: s.Head.Seq, Hash: s.Head.Hash.String()}
	if err != nil {
		row.Error = err.Error()
	}
	return row
}

func (a *app) convert(ctx context.Context, to, from *eventlog.Log, opts transfer.Options) error {
	p := a.printer()
	var read, stored int64
	ids, err := a.sessions(ctx, from, nil, true)
	if err != nil {
		return err
	}
	if len(opts.Sessions) > 0 {
		ids = opts.Sessions
	}
	step := a.steps(len(ids))
	events := map[string]int64{} // the events of each session: a session can be yielded again
	var failed []error
	for s, err := range transfer.Convert(ctx, to, from, opts) {
		if err != nil {
			failed = append(failed, err)
		} else {
			if _, again := events[s.Session]; !again {
				step()
			}
			read, stored = read+s.Read-events[s.Session], stored+s.Stored
			events[s.Session] = s.Read
		}
		if a.json {
			if err := p.Value(newConvertRow(s, err)); err != nil {
				return err
			}
		}
	}
	if !a.json {
		for _, err := range failed {
			if len(failed) > 1 {
				p.Printf("stopped: %s\n", clean(strings.TrimPrefix(err.Error(), "convert: ")))
			}
		}
		p.Printf("%s, %s: %s stored\n", count(len(events), "session"), count(read, "event"), thousands(stored))
	}
	if err := p.Flush(); err != nil && len(failed) == 0 {
		return err
	}
	return convertError(failed)
}

// convertError is the only error, or a count of the errors that were printed.
func convertError(failed []error) error {
	err := errors.Join(failed...)
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case len(failed) == 1:
		return copyError{redactionHint(failed[0], convertCopiesHint)}
	}
	text := count(len(failed), "session") + " could not be copied, as listed; the rest is"
	var order *transfer.RedactionError
	var hints []string
	for _, err := range failed {
		if errors.As(err, &order) && order.Original != "" {
			hints = append(hints, "; "+convertCopiesHint)
		} else if errors.As(err, &order) {
			hints = append(hints, "; "+applyHint)
		}
	}
	slices.Sort(hints)
	text += strings.Join(slices.Compact(hints), "")
	if errors.Is(err, eventlog.ErrConflict) {
		text += "; copy sessions with another history into another store"
	}
	if slices.ContainsFunc(failed, isTargetDamage) {
		text += "; " + targetHint("ID")
	}
	damaged := func(err error) bool { return errors.Is(err, eventlog.ErrCorrupt) && !isTargetDamage(err) }
	if slices.ContainsFunc(failed, damaged) || !slices.ContainsFunc(failed, isTargetDamage) && order == nil && !errors.Is(err, eventlog.ErrConflict) {
		text += "; logtool verify shows all damage, logtool store repair saves the readable events"
	}
	return errors.New(text)
}

// isTargetDamage reports whether the session that was to be copied is damaged in the destination.
func isTargetDamage(err error) bool {
	var source *transfer.SourceError
	return errors.Is(err, eventlog.ErrCorrupt) && !errors.As(err, &source)
}

// targetHint says how to replace a damaged session of the destination by the session of the source.
func targetHint(session string) string {
	return "remove it from the destination (logtool rm " + session + "), then copy it again (logtool store convert SRC DST " + session + ")"
}
