package jsonl_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/crashfs"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/verify"
)

var (
	crashSeeds = flag.Int("crash.seeds", 0, "how many random workloads the crash tests try, each with its own seed; 0 is a short run")
	crashFirst = flag.Uint64("crash.first", 1, "the first seed of the crash tests")
)

// crashes counts the simulated crashes.
type crashes struct{ process, machine, twice atomic.Int64 }

func (c *crashes) String() string {
	process, machine, twice := c.process.Load(), c.machine.Load(), c.twice.Load()
	return fmt.Sprintf("%d crashes: %d of all processes, %d of the machine, of these %d during recovery", process+machine, process, machine, twice)
}

// writer is a process that writes.
type writer struct {
	process *crashfs.FS
	log     *eventlog.Log
}

func startWriter(disk *crashfs.Disk, noSync bool) *writer {
	process := disk.Mount()
	store := jsonl.New("store", jsonl.Options{FS: process, NoSync: noSync, OpenFiles: 3})
	return &writer{process, eventlog.Open(store, eventlog.Options{SpillOver: spillOver, HotSessions: 2})}
}

// simulation is a disk with writers and a model of their actions. After each operation
// it simulates crashes.
type simulation struct {
	*author
	t       testing.TB
	seed    uint64
	noSync  bool
	disk    *crashfs.Disk
	writers []*writer
	crashes *crashes
	images  int // losses of power to try after each operation
	double  int // one in this many recoveries is crashed too
	failed  bool
}

func newSimulation(t testing.TB, seed uint64, noSync bool, writers int) *simulation {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &simulation{author: &author{Rand: r, model: newModel(), relaxed: noSync}, t: t, seed: seed, noSync: noSync,
		disk: crashfs.New(), crashes: new(crashes), images: 2, double: 20}
	source := startWriter(crashfs.New(), false)
	w.stream = makeStream(t.Context(), r, source.log)
	for range writers {
		w.writers = append(w.writers, startWriter(w.disk, noSync))
	}
	return w
}

// do runs an action in one writer, and sometimes restarts the writer.
func (w *simulation) do(a *action) {
	i := w.IntN(len(w.writers))
	ctx := w.t.Context()
	w.model.begin(a)
	if err := a.run(ctx, w.writers[i].log); err != nil {
		w.t.Fatalf("seed %d: %s: %v", w.seed, a.what, err)
	}
	if err := w.model.finish(ctx, w.writers[i].log, a, w.isDurable(a)); err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	switch w.IntN(12) {
	case 0:
		w.writers[i].process.Kill()
	case 1:
		if err := w.writers[i].log.Close(); err != nil {
			w.t.Fatalf("seed %d: close: %v", w.seed, err)
		}
	default:
		return
	}
	w.writers[i] = startWriter(w.disk, w.noSync)
}

func (w *simulation) isDurable(a *action) bool { return a.durable || !w.noSync }

// crash checks the disk after the death of all processes, and after a loss of power.
func (w *simulation) crash(op crashfs.Op, image *crashfs.Disk) {
	if w.failed {
		return
	}
	m := w.model.clone()
	what := "between actions"
	if len(m.inFlight) > 0 {
		what = "during " + m.inFlight[0].what
	}
	try := func(kind string, seed uint64, disk *crashfs.Disk, lossy bool) {
		err := w.recover(disk, m.clone(), lossy, w.IntN(w.double) == 0, seed)
		if err != nil && !w.failed {
			w.failed = true
			w.t.Errorf("workload %d, %s, crash %d of the %s after operation %d, %s %s, %s: %v",
				w.seed, policyName(w.noSync), seed, kind, op.N, op.Kind, op.Name, what, err)
		}
	}
	w.crashes.process.Add(1)
	try("processes", 0, image.Clone(), false)
	for range w.images {
		w.crashes.machine.Add(1)
		seed := w.Uint64()
		try("machine", seed, image.Crash(seed), w.noSync)
	}
}

func policyName(noSync bool) string { return map[bool]string{false: "always", true: "never"}[noSync] }

// recover checks the disk after a crash: first by reading, then by appending, then
// after another crash.
func (w *simulation) recover(disk *crashfs.Disk, m *model, lossy, twice bool, seed uint64) error {
	ctx := w.t.Context()
	fresh := startWriter(disk, w.noSync)
	sessions := append(m.sessions(), "new")
	if err := m.compare(ctx, fresh.log, lossy); err != nil {
		return err
	}
	if err := m.compareBytes(disk); err != nil {
		return err
	}
	if lossy {
		if err := m.acceptLosses(ctx, fresh.log); err != nil {
			return err
		}
	}
	if twice {
		disk.OnOp(func(op crashfs.Op, image func() *crashfs.Disk) { w.crashAgain(op, image(), m, seed) })
	}
	if err := w.resume(ctx, fresh.log, m, sessions); err != nil {
		return err
	}
	disk.OnOp(nil)
	if err := errors.Join(m.compare(ctx, fresh.log, false), verifyClean(ctx, fresh.log, m), m.compareBytes(disk), checkSavedTails(disk)); err != nil {
		return fmt.Errorf("after recovery: %w", err)
	}
	again := startWriter(disk.Crash(seed), w.noSync)
	if err := m.compare(ctx, again.log, w.noSync); err != nil {
		return fmt.Errorf("after a crash after recovery: %w", err)
	}
	return nil
}

// crashAgain simulates a crash during recovery.
func (w *simulation) crashAgain(op crashfs.Op, image *crashfs.Disk, m *model, seed uint64) {
	lossy := false
	if w.IntN(2) == 0 {
		seed = w.Uint64()
		image, lossy = image.Crash(seed), w.noSync
		w.crashes.machine.Add(1)
	} else {
		w.crashes.process.Add(1)
	}
	w.crashes.twice.Add(1)
	if err := w.recover(image, m.clone(), lossy, false, seed); err != nil && !w.failed {
		w.failed = true
		w.t.Errorf("workload %d, %s, crash %d during recovery after operation %d, %s %s: %v", w.seed, policyName(w.noSync), seed, op.N, op.Kind, op.Name, err)
	}
}

// resume retries the actions in progress and appends to every session. A redaction may
// need the append first, because the append truncates a tail with a hole.
func (w *simulation) resume(ctx context.Context, log *eventlog.Log, m *model, sessions []string) error {
	var later []*action
	for _, a := range slices.Clone(m.inFlight) {
		err := w.retry(ctx, log, m, a)
		if m.lossy && a.erases && errors.Is(err, eventlog.ErrCorrupt) {
			later, err = append(later, a), nil
		}
		if err != nil {
			return err
		}
	}
	next := &author{Rand: w.Rand, model: m, appendsOnly: true, shortTexts: true, made: 1_000_000}
	for _, session := range sessions {
		a := next.append(session, next.messages(1))
		m.begin(a)
		if err := a.run(ctx, log); err != nil {
			return fmt.Errorf("the next append to %s: %w", session, err)
		}
		if err := m.finish(ctx, log, a, w.isDurable(a)); err != nil {
			return err
		}
	}
	for _, a := range later {
		if err := w.retry(ctx, log, m, a); err != nil {
			return err
		}
	}
	return nil
}

func (w *simulation) retry(ctx context.Context, log *eventlog.Log, m *model, a *action) error {
	err := a.run(ctx, log)
	if m.lossy && (errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, eventlog.ErrEventNotFound)) {
		return m.abandon(ctx, log, a) // the events it expected are lost
	}
	if err != nil {
		return fmt.Errorf("%s again: %w", a.what, err)
	}
	return m.finish(ctx, log, a, w.isDurable(a))
}

// verifyClean checks that Verify reports nothing.
func verifyClean(ctx context.Context, log *eventlog.Log, m *model) error {
	for _, session := range m.sessions() {
		report, err := verify.Session(ctx, log, session)
		if err != nil {
			return err
		}
		for _, d := range append(report.Defects, report.Notes...) {
			return errors.New(d.String())
		}
	}
	return nil
}

// compareBytes checks that no file contains erased content.
func (m *model) compareBytes(disk *crashfs.Disk) error {
	for name, b := range disk.Files() {
		for _, secret := range m.erased {
			if bytes.Contains(b, []byte(secret)) {
				return fmt.Errorf("erased content is still in %s", name)
			}
		}
	}
	return nil
}

// checkSavedTails checks that the event at the place of each saved torn tail names it,
// with its size and digest.
func checkSavedTails(disk *crashfs.Disk) error {
	files := disk.Files()
	for name, b := range files {
		base, rest, ok := strings.Cut(name, ".torn-")
		if !ok || strings.HasSuffix(rest, ".tmp") {
			continue
		}
		place, settled, _ := strings.Cut(rest, ".")
		at, err := strconv.Atoi(place)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		sum := sha256.Sum256(b)
		if settled != "" {
			if !strings.HasPrefix(hex.EncodeToString(sum[:]), settled) {
				return fmt.Errorf("%s does not have its digest", name)
			}
			continue
		}
		session := files[base+".jsonl"]
		if at >= len(session) {
			return fmt.Errorf("%s: the session ends at %d, and no event names the cut", name, len(session))
		}
		line, _, _ := bytes.Cut(session[at:], []byte("\n"))
		e, err := event.Parse(line, "")
		if err != nil {
			return fmt.Errorf("%s: the line there: %w", name, err)
		}
		if cut, ok := e.Cut(); !ok || cut.Bytes != int64(len(b)) || cut.SHA256 != sum {
			return fmt.Errorf("%s has %d bytes, the event there names %v", name, len(b), cut)
		}
	}
	return nil
}

// workloads calls run with each seed.
func workloads(t *testing.T, short int, run func(t *testing.T, seed uint64)) {
	n := *crashSeeds
	if n == 0 {
		n = short
	}
	for seed := *crashFirst; seed < *crashFirst+uint64(n); seed++ {
		run(t, seed)
		if t.Failed() {
			t.Fatalf("stopped at seed %d: go test ./store/jsonl -run '%s' -crash.first %d -crash.seeds 1", seed, t.Name(), seed)
		}
	}
}

// Several processes write, and after each operation all processes or the machine crash.
// Acknowledged events are stored, each append is complete or absent, a retried action
// is stored once, and writers can continue.
func TestCrash(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		total := new(crashes)
		t.Run(policyName(noSync), func(t *testing.T) {
			workloads(t, 1, func(t *testing.T, seed uint64) {
				w := newSimulation(t, seed, noSync, 3)
				w.crashes = total
				w.disk.OnOp(func(op crashfs.Op, image func() *crashfs.Disk) { w.crash(op, image()) })
				steps := 25
				if *crashSeeds == 0 {
					steps = testsize.Pick(2, 4, 18)
				}
				for range steps {
					w.do(w.next())
				}
			})
			t.Log(total)
		})
	}
}

// TestCrash with concurrent appends.
func TestCrashConcurrent(t *testing.T) {
	total, steps := new(crashes), testsize.Pick(1, 2, 6)
	workloads(t, 1, func(t *testing.T, seed uint64) {
		w := newSimulation(t, seed, false, 2)
		w.crashes = total
		w.disk.OnOp(func(op crashfs.Op, image func() *crashfs.Disk) { w.crash(op, image()) })
		var wg sync.WaitGroup
		for i := range 4 {
			own := &author{Rand: rand.New(rand.NewPCG(seed, uint64(i+10))), model: w.model, made: i * 1000, appendsOnly: true}
			log := w.writers[i%2].log
			wg.Go(func() {
				for range steps {
					a := own.next()
					w.model.begin(a)
					if err := a.run(t.Context(), log); err != nil {
						t.Errorf("%s: %v", a.what, err)
						return
					}
					if err := w.model.finish(t.Context(), log, a, true); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
	t.Log(total)
}
