package eventlog

import (
	"context"
	"fmt"
	"iter"
)

// Convert copies every session of src into dst: lines and blobs verbatim,
// parents before their forks. What dst has already is passed over; a session
// with another history is a *ConflictError. The sequence yields each session
// when it is done.
func Convert(ctx context.Context, dst, src *Log) iter.Seq2[Adopted, error] {
	return func(yield func(Adopted, error) bool) {
		done := map[string]bool{}
		for info, err := range src.Sessions(ctx) {
			if err == nil {
				err = info.Err
			}
			if err != nil {
				yield(Adopted{Session: info.ID}, fmt.Errorf("convert: %w", err))
				return
			}
			line, err := src.forkLine(ctx, info.ID)
			for i := len(line) - 1; err == nil && i >= 0; i-- {
				if done[line[i]] {
					continue
				}
				done[line[i]] = true
				var adopted Adopted
				if adopted, err = convert(ctx, dst, src, line[i]); err == nil && !yield(adopted, nil) {
					return
				}
			}
			if err != nil {
				yield(Adopted{Session: info.ID}, fmt.Errorf("convert session %q: %w", info.ID, err))
				return
			}
		}
	}
}

func convert(ctx context.Context, dst, src *Log, session string) (Adopted, error) {
	copied := map[Digest]bool{}
	return dst.Adopt(ctx, session, func(yield func(Event, error) bool) {
		for e, err := range src.store.Read(ctx, session, Span{}) {
			for _, d := range e.Blobs() {
				if err == nil && !copied[d] {
					copied[d] = true
					err = copyBlob(ctx, dst, src, d)
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	})
}

// copyBlob copies a blob that dst does not have.
func copyBlob(ctx context.Context, dst, src *Log, d Digest) error {
	if dst.checkBlob(ctx, d) == nil {
		return nil
	}
	body, err := src.OpenBlob(ctx, d)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = dst.PutBlob(ctx, body)
	return err
}
