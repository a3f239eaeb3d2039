package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/transfer"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup TARGET",
		Short: "Copy the log while others write to it; the copy is a store itself",
		Long: `Copy every session and blob into TARGET, named as --store names a store, which
must be absent or empty. Writers go on meanwhile; redaction, removal and gc wait.
Everything is verified on the way, and each session is whole up to a moment of
the backup. TARGET appears only when all of it is on disk: until then it is
TARGET.partial.

A session that is damaged is reported and left out with its forks, the others
are copied, and the exit code is 1. To restore, use TARGET as the store.`,
		Example: "  logtool --store ~/logs backup /mnt/usb/logs-2026-11-21\n  logtool --store s.db backup s-backup.db",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := a.place()
			if err == nil {
				err = src.exists()
			}
			if err != nil {
				return err
			}
			to, err := newTarget(src, args[0])
			if err != nil {
				return err
			}
			return a.backup(cmd.Context(), src, to)
		},
	}
}

// backup fills the target, and then gives it its name.
func (a *app) backup(ctx context.Context, src place, to target) error {
	if err := to.create(); err != nil {
		return err
	}
	m := forReading
	if src.writable() {
		m = forChanging // so that it can take the store lock
	}
	b := backingUp{app: a, printer: a.printer(), progress: a.progress(), sum: backedUp{Target: to.String()}}
	err := src.with(m, func(from *eventlog.Log) error {
		return to.fill(func(into *eventlog.Log) error { return b.copy(ctx, into, from) })
	})
	b.clear()
	if err == nil {
		err = to.finish()
	} else {
		err = fmt.Errorf("no backup was made: %w", errors.Join(err, to.discard()))
	}
	if err != nil {
		return errors.Join(err, b.flush())
	}
	return b.finish()
}

// backedUp sums up a backup.
type backedUp struct {
	Target   string `json:"target"`
	Sessions int64  `json:"sessions"`
	Events   int64  `json:"events"`
	Damaged  int64  `json:"damaged"`
}

// backingUp is a backup under way.
type backingUp struct {
	app *app
	*printer
	*progress
	sum backedUp
}

func (b *backingUp) copy(ctx context.Context, into, from *eventlog.Log) error {
	seen := map[string]bool{}
	for s, err := range transfer.Backup(ctx, into, from) {
		var damage *transfer.SourceError
		if err != nil && !errors.As(err, &damage) {
			return err
		}
		if b.sum.Events += s.Stored; !seen[s.Session] && s.Stored > 0 {
			seen[s.Session] = true
			b.sum.Sessions++
		}
		if damage != nil {
			b.sum.Damaged++
			b.clear()
		}
		if err := b.session(s, damage); err != nil {
			return err
		}
		b.show("%s, %s", count(b.sum.Sessions, "session"), count(b.sum.Events, "event"))
	}
	return ctx.Err()
}

// session prints what became of a session.
func (b *backingUp) session(s transfer.Result, damage *transfer.SourceError) error {
	if b.app.json {
		row := converted{Session: s.Session, Read: s.Read, Stored: s.Stored, Seq: s.Head.Seq, Hash: s.Head.Hash.String()}
		if damage != nil {
			row.Error = damage.Cause.Error()
		}
		return b.value(row)
	}
	if damage != nil {
		b.printf("%s session %s: %s\n", b.paint(red, "damaged"), clean(fmt.Sprintf("%q", damage.Session)), clean(damage.Cause.Error()))
	}
	return nil
}

// finish prints the sum; damage is an error although the backup stands.
func (b *backingUp) finish() error {
	if b.app.json {
		if err := b.value(b.sum); err != nil {
			return err
		}
	} else {
		b.printf("%s, %s: backed up to %s\n", count(b.sum.Sessions, "session"), count(b.sum.Events, "event"), clean(b.sum.Target))
	}
	if err := b.flush(); err != nil || b.sum.Damaged == 0 {
		return err
	}
	return fmt.Errorf("the backup is made, but for %s that cannot be copied whole, as listed: logtool repair saves what is readable of them",
		count(b.sum.Damaged, "session"))
}
