package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
)

// end is the end of a batch.
type end struct {
	more bool   // messages are left
	upTo uint64 // the newest sequence of the replica; 0 if unknown
}

const (
	// batchBytes is the size at which the server ends a batch.
	batchBytes = 4 << 20
	// batchIdle bounds the wait for the next message of a batch.
	batchIdle = 2 * time.Second
)

var errBatchBroke = errors.New("the batch broke off")

// batch passes messages of any replica to each, in the order of their sequences. It
// stops at an error of each.
func (st *stream) batch(ctx context.Context, r getRequest, most int, each func(m *message) error) (end, error) {
	began := time.Now()
	for {
		passed, e, err := st.tryBatch(ctx, r, most, each)
		if !errors.Is(err, errBatchBroke) || passed > 0 {
			if errors.Is(err, errBatchBroke) {
				return end{more: true}, nil // the caller goes on after the last message
			}
			return e, err
		}
		if err := st.store.usable(ctx); err != nil {
			return end{}, err
		}
		if time.Since(began) > patience {
			return end{}, fmt.Errorf("%w: stream %s: %w", eventlog.ErrUnavailable, st.name, err)
		}
	}
}

func (st *stream) tryBatch(ctx context.Context, r getRequest, most int, each func(m *message) error) (passed int, e end, err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return 0, end{}, err
	}
	subject := "$JS.API.DIRECT.GET." + st.name
	w := st.client.begin(subject, most+1)
	defer w.end()
	if err := st.client.nc.PublishRequest(subject, w.reply, data); err != nil {
		return 0, end{}, st.pauseBroken(ctx, err)
	}
	timer := time.NewTimer(batchIdle)
	defer timer.Stop()
	for {
		answer, err := w.wait(ctx, timer.C)
		switch {
		case errors.Is(err, errSilent), errors.Is(err, nats.ErrNoResponders):
			return passed, end{}, st.pauseBroken(ctx, err)
		case err != nil:
			return passed, end{}, st.store.failure(err)
		case len(answer.Header["Nats-Sequence"]) == 0:
			e, err := st.batchEnd(answer)
			return passed, e, err
		}
		m, err := st.stored(answer)
		if err == nil {
			err = each(m)
		}
		if err != nil {
			return passed, end{}, err
		}
		passed++
		timer.Reset(batchIdle)
	}
}

// pauseBroken waits before a broken batch is asked for again.
func (st *stream) pauseBroken(ctx context.Context, cause error) error {
	select {
	case <-time.After(busyPause):
		return fmt.Errorf("%w: %w", errBatchBroke, cause)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// batchEnd decodes the answer after the last message of a batch.
func (st *stream) batchEnd(m *nats.Msg) (end, error) {
	switch status := m.Header.Get("Status"); status {
	case "204":
		left, _ := strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
		upTo, _ := strconv.ParseUint(m.Header.Get("Nats-UpTo-Sequence"), 10, 64)
		return end{more: left > 0, upTo: upTo}, nil
	case "404":
		return end{}, nil
	default:
		return end{}, fmt.Errorf("stream %s: batch: %s %s", st.name, status, m.Header.Get("Description"))
	}
}

// maxGets is the number of requests of several that have no answer yet.
const maxGets = 128

// several returns the messages of sequences, by sequence. It sends many requests before the
// first answer arrives. A message may lack, because an answer was lost or the replica lacks
// the message: the caller asks for it by at.
func (st *stream) several(ctx context.Context, seqs []uint64) (map[uint64]*message, error) {
	found := make(map[uint64]*message, len(seqs))
	for some := range slices.Chunk(seqs, maxGets) {
		if err := st.getAll(ctx, some, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// getAll asks for messages at once, until each request is answered or an answer is late.
func (st *stream) getAll(ctx context.Context, seqs []uint64, found map[uint64]*message) error {
	subject := "$JS.API.DIRECT.GET." + st.name
	w := st.client.begin(subject, len(seqs))
	defer w.end()
	for _, seq := range seqs {
		if err := st.client.nc.PublishRequest(subject, w.reply, fmt.Appendf(nil, `{"seq":%d}`, seq)); err != nil {
			return nil
		}
	}
	late := time.NewTimer(batchIdle)
	defer late.Stop()
	for range seqs {
		answer, err := w.wait(ctx, late.C)
		if err != nil {
			return st.store.usable(ctx)
		}
		if m, err := st.stored(answer); m != nil && err == nil {
			found[m.at] = m
		}
	}
	return nil
}

// each passes the messages of a subject, from a sequence on, to fn. A replica that lacks
// messages has none left too early, so the end is confirmed.
func (st *stream) each(ctx context.Context, subject string, from uint64, fn func(m *message) error) error {
	for {
		passed := 0
		pass := func(m *message) error {
			from = m.at + 1
			passed++
			return fn(m)
		}
		_, err := st.batch(ctx, getRequest{Seq: max(from, 1), Next: subject, Batch: maxPage, MaxBytes: batchBytes}, maxPage, pass)
		if err == nil && passed == 0 && st.replicas > 1 {
			var m *message
			if m, err = st.next(ctx, subject, from); m != nil {
				err = pass(m)
			}
		}
		if err != nil || passed == 0 {
			return err
		}
	}
}
