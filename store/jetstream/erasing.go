package jetstream

import (
	"context"
	"errors"
	"strconv"
)

// eraseSubject overwrites the messages of a subject before a sequence.
func (st *stream) eraseSubject(ctx context.Context, subject string, before uint64) error {
	for {
		var sequences []uint64
		err := st.each(ctx, subject, 1, func(m *message) error {
			if m.at >= before {
				return errStop
			}
			sequences = append(sequences, m.at)
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			return err
		}
		if err := st.erase(ctx, sequences); err != nil {
			return err
		}
		// The replica that answered may have lacked messages.
		first, err := st.first(ctx, subject)
		if err != nil || first == nil || first.at >= before {
			return err
		}
	}
}

// placeOf names a subject in reports.
func (st *stream) placeOf(subject string) string {
	return "stream " + st.name + " subject " + strconv.Quote(subject)
}

// erase overwrites messages on the disks of the servers. Missing messages are ignored.
func (st *stream) erase(ctx context.Context, sequences []uint64) error {
	return parallel(sequences, func(seq uint64) error {
		var answer struct{}
		body := struct {
			Seq uint64 `json:"seq"`
		}{seq}
		err := st.client.request(ctx, "$JS.API.STREAM.MSG.DELETE."+st.name, body, &answer)
		if isCode(err, codeNoMessage, codeNoSequence) {
			return nil
		}
		if isCode(err, codeNotDeleted) {
			if m, getting := st.get(ctx, getRequest{Seq: seq}); m == nil && getting == nil {
				return nil
			}
		}
		return st.store.failure(err)
	})
}

// requestsInFlight bounds the requests of one call that wait for answers.
const requestsInFlight = 32

// parallel calls do for each element, several at a time. It returns the first error.
func parallel[T any](all []T, do func(T) error) error {
	errs := make(chan error, len(all))
	slots := make(chan struct{}, requestsInFlight)
	for _, one := range all {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			errs <- do(one)
		}()
	}
	var first error
	for range all {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// afterAll is a sequence after those of all messages.
const afterAll = 1 << 62

// purge removes the messages of a subject before a sequence. It does not overwrite them.
func (st *stream) purge(ctx context.Context, subject string, before uint64) error {
	var answer struct{}
	body := struct {
		Filter string `json:"filter"`
		Seq    uint64 `json:"seq"`
	}{subject, before}
	return st.client.request(ctx, "$JS.API.STREAM.PURGE."+st.name, body, &answer)
}
