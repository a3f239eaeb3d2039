package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// operation is one method of a log or a store, as a test calls it.
type operation struct {
	name string
	call func(ctx context.Context) error
}

// drain reads a sequence to its end.
func drain[T any](seq iter.Seq2[T, error]) error {
	_, err := suite.Collect(seq)
	return err
}

// defect is an error for the first defect of a report.
func defect(defects []eventlog.Defect, err error) error {
	if err == nil && len(defects) > 0 {
		return fmt.Errorf("reported as damage: %v", defects[0])
	}
	return err
}

func (c *closing) logOperations() []operation {
	l := c.log
	all := []operation{
		{"Log.Append", func(ctx context.Context) error {
			_, err := l.Append(ctx, "b", eventlog.Any(), suite.Notes(2)...)
			return err
		}},
		{"Log.AppendEach", func(ctx context.Context) error {
			_, err := l.AppendEach(ctx, "b", eventlog.Any(), suite.Notes(1), suite.Notes(1))
			return err
		}},
		{"Log.Read", func(ctx context.Context) error { return drain(l.Read(ctx, "a", eventlog.All())) }},
		{"Log.Read of a path", func(ctx context.Context) error { return drain(l.Read(ctx, "a", eventlog.All().OnPath())) }},
		{"Log.Watch", func(ctx context.Context) error { return drain(l.Watch(ctx, "a", 1)) }},
		{"Log.Head", func(ctx context.Context) error {
			_, err := l.Head(ctx, "a")
			return err
		}},
		{"Log.Event", func(ctx context.Context) error {
			_, err := l.Event(ctx, "a", 7)
			return err
		}},
		{"Log.Path", func(ctx context.Context) error {
			_, err := l.Path(ctx, "a", 7)
			return err
		}},
		{"Log.Ancestors", func(ctx context.Context) error { return drain(l.Ancestors(ctx, "a")) }},
		{"Log.Forks", func(ctx context.Context) error {
			_, err := l.Forks(ctx)
			return err
		}},
		{"Log.Resolve", func(ctx context.Context) error {
			_, err := l.Resolve(ctx, "a")
			return err
		}},
		{"Log.Ping", l.Ping},
		{"Log.Sessions", func(ctx context.Context) error {
			for info, err := range l.Sessions(ctx) {
				if err = errors.Join(err, info.Err); err != nil {
					return err
				}
			}
			return nil
		}},
		{"Log.Hold", func(ctx context.Context) error { return l.Hold(ctx, func(context.Context) error { return nil }) }},
		{"verify.Session", func(ctx context.Context) error {
			r, err := verify.Session(ctx, l, "a")
			return defect(r.Defects, err)
		}},
		{"verify.Store", func(ctx context.Context) error { return defect(suite.Defects(verify.Store(ctx, l))) }},
		{"verify.TornTails", func(ctx context.Context) error { return drain(verify.TornTails(ctx, l)) }},
		{"search.Events", func(ctx context.Context) error { return drain(search.Events(ctx, l, search.Query{Text: "7"})) }},
		{"transfer.Export", func(ctx context.Context) error { return transfer.Export(ctx, l, io.Discard, "a") }},
		{"transfer.Backup", func(ctx context.Context) error {
			return c.transferred(transfer.Backup(ctx, eventlog.Open(memory.New()), l))
		}},
		{"transfer.Convert", func(ctx context.Context) error {
			return c.transferred(transfer.Convert(ctx, eventlog.Open(memory.New()), l, transfer.Options{Sessions: []string{"a"}}))
		}},
	}
	return append(all, c.upkeepOperations()...)
}

func (c *closing) transferred(results iter.Seq2[transfer.Result, error]) error {
	for _, err := range results {
		if err != nil {
			return err
		}
	}
	return nil
}

// upkeepOperations returns the operations that need an ability of the store.
func (c *closing) upkeepOperations() (all []operation) {
	l := c.log
	if _, ok := eventlog.As[eventlog.Eraser](c.store); ok {
		all = append(all,
			operation{"erase.Redact", func(ctx context.Context) error {
				head, err := l.Append(ctx, "redacted", eventlog.Any(), suite.Note(1))
				if err == nil {
					_, err = erase.Redact(ctx, l, "redacted", []int64{head.Seq}, erase.RedactOptions{Reason: "test"})
				}
				return err
			}},
			operation{"erase.Remove", func(ctx context.Context) error {
				if _, err := l.Append(ctx, "removed", eventlog.Any(), suite.Note(1)); err != nil {
					return err
				}
				return erase.Remove(ctx, l, "removed")
			}})
	}
	if _, ok := eventlog.As[eventlog.Sweeper](c.store); ok {
		all = append(all, operation{"erase.Collect", func(ctx context.Context) error {
			_, err := erase.Collect(ctx, l)
			return err
		}})
	}
	if _, ok := eventlog.As[eventlog.Salvager](c.store); ok {
		all = append(all, operation{"repair.Session", func(ctx context.Context) error {
			r, err := repair.Session(ctx, l, "a")
			if err == nil && r.Action != repair.None {
				err = fmt.Errorf("repaired %d lost events", len(r.Lost))
			}
			return err
		}})
	}
	if _, ok := eventlog.As[eventlog.Blobs](c.store); ok {
		all = append(all,
			operation{"Log.PutBlob", func(ctx context.Context) error {
				_, err := l.PutBlob(ctx, suite.NewReader("body"))
				return err
			}},
			operation{"Log.OpenBlob", func(ctx context.Context) error { return readBlob(l.OpenBlob(ctx, c.digest)) }},
			operation{"Log.StoreArtifact", func(ctx context.Context) error {
				_, _, err := l.StoreArtifact(ctx, "b", eventlog.Any(), event.Artifact{ArtifactID: "x"}, suite.NewReader("body"))
				return err
			}})
	}
	return all
}

// readBlob reads a blob to its end. Close may end the reading.
func readBlob(r io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

func (c *closing) storeOperations() []operation {
	s := c.store
	all := []operation{
		{"Store.Append", func(ctx context.Context) error {
			return s.Append(ctx, "a", event.Head{}, suite.BatchAfter("a", event.Head{}, 1), true)
		}},
		{"Store.Read", func(ctx context.Context) error { return drain(s.Read(ctx, "a", eventlog.Span{})) }},
		{"Store.Read backward", func(ctx context.Context) error { return drain(s.Read(ctx, "a", eventlog.Span{Backward: true})) }},
		{"Store.Sessions", func(ctx context.Context) error { return drain(s.Sessions(ctx)) }},
	}
	return append(all, c.abilityOperations()...)
}

// locked calls f under the store lock, which some operations need. A store without the
// lock needs none.
func (c *closing) locked(ctx context.Context, exclusive bool, f func() error) error {
	l, ok := eventlog.As[eventlog.Locker](c.store)
	if !ok {
		return f()
	}
	_, unlock, err := l.Lock(ctx, exclusive)
	if errors.Is(err, eventlog.ErrClosed) {
		return f() // must return ErrClosed by itself
	}
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}

func (c *closing) abilityOperations() (all []operation) {
	add := func(name string, call func(ctx context.Context) error) { all = append(all, operation{name, call}) }
	if b, ok := eventlog.As[eventlog.Blobs](c.store); ok {
		add("Blobs.PutBlob", func(ctx context.Context) error {
			return c.locked(ctx, false, func() error {
				_, _, err := b.PutBlob(ctx, bytes.NewReader(make([]byte, 2<<20)))
				return err
			})
		})
		add("Blobs.OpenBlob", func(ctx context.Context) error { return readBlob(b.OpenBlob(ctx, c.digest)) })
		add("Blobs.RemoveBlobs", func(ctx context.Context) error {
			return c.locked(ctx, true, func() error { return b.RemoveBlobs(ctx, []event.Digest{event.DigestOf([]byte("missing"))}) })
		})
		add("Blobs.ListBlobs", func(ctx context.Context) error { return drain(b.ListBlobs(ctx)) })
	}
	if l, ok := eventlog.As[eventlog.Locker](c.store); ok {
		for _, exclusive := range []bool{false, true} {
			add(fmt.Sprintf("Locker.Lock, exclusive %v", exclusive), func(ctx context.Context) error {
				_, unlock, err := l.Lock(ctx, exclusive)
				if err == nil {
					unlock()
				}
				return err
			})
		}
	}
	if e, ok := eventlog.As[eventlog.Eraser](c.store); ok {
		add("Eraser.Rewrite", func(ctx context.Context) error {
			return c.locked(ctx, true, func() error { return e.Rewrite(ctx, "a", c.head, nil, nil) })
		})
		add("Eraser.Erasing", func(ctx context.Context) error {
			_, err := e.Erasing(ctx)
			return err
		})
		add("Eraser.SetErasing", func(ctx context.Context) error {
			return c.locked(ctx, true, func() error { return e.SetErasing(ctx, nil) })
		})
		add("Eraser.RemoveSession", func(ctx context.Context) error {
			return c.locked(ctx, true, func() error { return e.RemoveSession(ctx, "a", event.Head{}) })
		})
	}
	if k, ok := eventlog.As[eventlog.TailKeeper](c.store); ok {
		add("TailKeeper.TornTails", func(ctx context.Context) error { return drain(k.TornTails(ctx, "")) })
		add("TailKeeper.CutTail", func(ctx context.Context) error {
			_, _, err := k.CutTail(ctx, "a")
			return err
		})
		add("TailKeeper.ForgetCut", func(ctx context.Context) error { return k.ForgetCut(ctx, "a", c.head) })
	}
	if v, ok := eventlog.As[eventlog.Salvager](c.store); ok {
		add("Salvager.Fragments", func(ctx context.Context) error { return drain(v.Fragments(ctx, "a")) })
		add("Salvager.Replace", func(ctx context.Context) error {
			return c.locked(ctx, true, func() error {
				_, err := v.Replace(ctx, "a", 0, c.store.Read(ctx, "a", eventlog.Span{}))
				return err
			})
		})
	}
	if w, ok := eventlog.As[eventlog.Sweeper](c.store); ok {
		add("Sweeper.Sweep", func(ctx context.Context) error { return drain(w.Sweep(ctx, false)) })
		add("Sweeper.Mentioned", func(ctx context.Context) error { return drain(w.Mentioned(ctx)) })
	}
	if k, ok := eventlog.As[eventlog.Checker](c.store); ok {
		add("Checker.Check", func(ctx context.Context) error { return defect(suite.Defects(k.Check(ctx))) })
	}
	if y, ok := eventlog.As[eventlog.Syncer](c.store); ok {
		add("Syncer.Sync", func(ctx context.Context) error { return y.Sync(ctx, "a") })
	}
	if v, ok := eventlog.As[eventlog.Versioner](c.store); ok {
		add("Versioner.Version", func(ctx context.Context) error {
			_, err := v.Version(ctx, "a")
			return err
		})
	}
	if l, ok := eventlog.As[eventlog.Leaser](c.store); ok {
		add("Leaser.Lease", func(ctx context.Context) error {
			lease, err := l.Lease(ctx, event.NewID().String())
			if err == nil {
				err = lease.Release()
			}
			return err
		})
		add("Leaser.Leased", func(ctx context.Context) error {
			_, err := l.Leased(ctx, "a")
			return err
		})
	}
	if n, ok := eventlog.As[eventlog.Notifier](c.store); ok {
		add("Notifier.Changes", func(ctx context.Context) error {
			for _, err := range n.Changes(ctx) {
				return err
			}
			return nil
		})
	}
	if x, ok := eventlog.As[eventlog.Searcher](c.store); ok {
		add("Searcher.Search", func(ctx context.Context) error { return drain(x.Search(ctx, []string{"7"}, "", 0)) })
		add("Searcher.Index", func(ctx context.Context) error { return x.Index(ctx, false) })
	}
	return all
}
