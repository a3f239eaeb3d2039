package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/transfer"
)

func (a *app) backupCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "backup TARGET",
		Short: "Copy the log while others write to it; the copy is a store itself",
		Long: `Copy every session and blob into the store TARGET, written like the value of
--store. TARGET must be absent or empty; on a server, the schema has no tables. Other
processes continue to write; redaction, removal and gc wait. Everything is verified, and
each session is complete up to a moment of the backup. Until all of it is on disk, the
name of the backup is TARGET.partial, and on a server SCHEMA_partial.

A damaged session is reported and left out with its forks. The others are copied.
To restore a backup, use TARGET as the store.`,
		Example: "  logtool --store ~/logs store backup /mnt/usb/logs-2026-11-21",
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
	}, traits{verb: "copying", args: []argument{storeArg}, exits: "0 done, 1 failed, or a session is damaged, 2 wrong usage."})
}

// backup fills the target, then gives it its name.
func (a *app) backup(ctx context.Context, src place, to backupTarget) error {
	if err := to.create(ctx); err != nil {
		return err
	}
	m := forReading
	if src.writable() {
		m = forChanging // for the store lock
	}
	b := backupRun{app: a, printer: a.printer(), sum: backupSum{Target: to.String()}}
	err := src.with(m, func(from *eventlog.Log) error {
		return to.fill(func(into *eventlog.Log) error { return b.copy(ctx, into, from) })
	})
	if err == nil {
		err = to.finish(ctx)
	} else {
		err = fmt.Errorf("back up %s to %s: nothing was made: %w", src, to, errors.Join(err, to.discard(ctx)))
	}
	if err != nil {
		return errors.Join(err, b.Flush())
	}
	return b.finish()
}

// backupSum is the sum of a backup.
type backupSum struct {
	Target   string `json:"target"`
	Sessions int64  `json:"sessions"`
	Events   int64  `json:"events"`
	Damaged  int64  `json:"damaged"`
}

// backupRun is one run of backup.
type backupRun struct {
	app *app
	*printer
	sum backupSum
}

func (b *backupRun) copy(ctx context.Context, into, from *eventlog.Log) error {
	seen := map[string]bool{}
	ids, err := b.app.sessions(ctx, from, nil, true)
	if err != nil {
		return err
	}
	step := b.app.steps(len(ids))
	for s, err := range transfer.Backup(ctx, into, from) {
		var damage *transfer.SourceError
		if err != nil && !errors.As(err, &damage) {
			return err
		}
		if b.sum.Events += s.Stored; !seen[s.Session] && s.Stored > 0 {
			seen[s.Session] = true
			b.sum.Sessions++
			step()
		}
		if damage != nil {
			b.sum.Damaged++
		}
		if err := b.session(s, damage); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// session prints a session that was copied, or is damaged.
func (b *backupRun) session(s transfer.Result, damage *transfer.SourceError) error {
	if b.app.json {
		if damage == nil {
			return b.Value(newConvertRow(s, nil))
		}
		return b.Value(newConvertRow(s, damage.Cause))
	}
	if damage != nil {
		b.Printf("%s session %s: %s\n", b.Paint(term.Red, "damaged"), clean(fmt.Sprintf("%q", damage.Session)), clean(damage.Cause.Error()))
	}
	return nil
}

// finish prints the sum. Damage is an error, although there is a backup.
func (b *backupRun) finish() error {
	if b.app.json {
		_ = b.Value(b.sum) // flush returns the error
	} else {
		b.Printf("%s, %s: backed up to %s\n", count(b.sum.Sessions, "session"), count(b.sum.Events, "event"), clean(b.sum.Target))
	}
	if err := b.Flush(); err != nil || b.sum.Damaged == 0 {
		return err
	}
	return fmt.Errorf("the backup is made, but for %s that cannot be copied whole, as listed: logtool store repair saves their readable events",
		count(b.sum.Damaged, "session"))
}
