package jsonl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/convlog/convlog/internal/crashfs"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/verify"
)

// damagedDisk returns a disk with one session that has a flipped bit.
func damagedDisk(ctx context.Context, r *rand.Rand) (disk *crashfs.Disk, damaged []byte) {
	disk = crashfs.New()
	w := &author{Rand: r, model: newModel(), appendsOnly: true}
	log := startWriter(disk, false).log
	for range 6 {
		mustDo(w.append("a", w.messages(1+r.IntN(3))).run(ctx, log))
	}
	mustDo(log.Close())
	disk.Damage("a.jsonl", func(b []byte) []byte {
		b[r.IntN(len(b))] ^= 1 << r.IntN(7)
		if r.IntN(3) == 0 {
			b = b[:len(b)-r.IntN(50)]
		}
		damaged = b
		return b
	})
	return disk, damaged
}

// repairSession repairs session a and returns its lines.
func repairSession(ctx context.Context, disk *crashfs.Disk, opts repair.Options) (lines []byte, report repair.Report, err error) {
	log := startWriter(disk, false).log
	if report, err = repair.Session(ctx, log, "a", opts); err != nil {
		return nil, report, err
	}
	session := report.As
	if session == "" {
		session = "a"
	}
	events, err := readOwn(ctx, log, session)
	if err != nil {
		return nil, report, err
	}
	for i := range events {
		lines = append(append(lines, events[i].Line()...), '\n')
	}
	found, err := verify.Session(ctx, log, session)
	if err == nil && len(found.Defects) > 0 {
		err = errors.New(found.Defects[0].String())
	}
	return lines, report, err
}

// An interrupted repair has changed everything or nothing. A second repair gives the
// same result. The replaced file is kept.
func TestCrashRepair(t *testing.T) {
	total := new(crashes)
	workloads(t, testsize.Pick(1, 2, 6), func(t *testing.T, seed uint64) {
		ctx := t.Context()
		r := rand.New(rand.NewPCG(seed, 2))
		disk, damaged := damagedDisk(ctx, r)
		opts := repair.Options{InPlace: r.IntN(3) > 0}
		want, report, err := repairSession(ctx, disk.Clone(), opts)
		if err != nil {
			if refusal := new(repair.Error); errors.As(err, &refusal) {
				return // nothing left to repair
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		disk.OnOp(func(op crashfs.Op, image func() *crashfs.Disk) {
			total.process.Add(1)
			total.machine.Add(2)
			for _, after := range []*crashfs.Disk{image(), image().Crash(r.Uint64()), image().Crash(r.Uint64())} {
				if err := repairAgain(ctx, after, opts, report, damaged, want, r.Uint64()); err != nil {
					t.Errorf("seed %d, %+v, operation %d, %s %s: %v", seed, opts, op.N, op.Kind, op.Name, err)
				}
			}
		})
		if _, _, err := repairSession(ctx, disk, opts); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	})
	t.Log(total)
}

// repairAgain checks the disk after an interrupted repair, and repeats the repair.
func repairAgain(ctx context.Context, disk *crashfs.Disk, opts repair.Options, report repair.Report, damaged, want []byte, seed uint64) error {
	if now := disk.Files()["a.jsonl"]; !bytes.Equal(now, damaged) && !(opts.InPlace && bytes.Equal(now, want)) && report.Action != repair.Cut {
		return errors.New("the damaged session is neither unchanged nor repaired")
	}
	got, _, err := repairSession(ctx, disk, opts)
	if err != nil {
		return fmt.Errorf("again: %w", err)
	}
	if !bytes.Equal(got, want) {
		return errors.New("the second repair gives other lines")
	}
	if opts.InPlace && report.Action == repair.Salvage && !hasBackup(disk, damaged) {
		return errors.New("the replaced file has no backup copy")
	}
	got, _, err = repairSession(ctx, disk.Crash(seed), opts)
	if err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("after another crash: %w", err)
	}
	return nil
}

func hasBackup(disk *crashfs.Disk, b []byte) bool {
	for name, kept := range disk.Files() {
		if strings.HasPrefix(name, "a.damaged-") && bytes.Equal(kept, b) {
			return true
		}
	}
	return false
}
