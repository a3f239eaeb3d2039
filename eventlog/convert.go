package eventlog

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
)

// Convert copies every session of src into dst: lines and blobs verbatim,
// parents before their forks. What dst has already is passed over. The
// sequence yields each session when it is done, or with the error that kept it
// from being copied whole (damage, or a *ConflictError where dst has another
// history); a caller that goes on gets the others.
func Convert(ctx context.Context, dst, src *Log) iter.Seq2[Adopted, error] {
	return func(yield func(Adopted, error) bool) {
		done := map[string]bool{}
		for info, err := range src.Sessions(ctx) {
			if err != nil {
				yield(Adopted{Session: info.ID}, fmt.Errorf("convert: %w", err))
				return
			}
			line, err := src.forkLine(ctx, info.ID)
			if err = cmp.Or(info.Err, err); err != nil {
				line = []string{info.ID}
			}
			for _, session := range slices.Backward(line) {
				if done[session] {
					continue
				}
				done[session] = true
				adopted := Adopted{Session: session}
				if err == nil {
					adopted, err = convert(ctx, dst, src, session)
				}
				if err != nil {
					adopted.Session, err = session, fmt.Errorf("convert session %q: %w", session, err)
				}
				if !yield(adopted, err) || ctx.Err() != nil {
					return
				}
				err = nil
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

// copyBlob copies a blob that dst does not have. Adopt holds dst's store lock.
func copyBlob(ctx context.Context, dst, src *Log, d Digest) error {
	if dst.checkBlob(ctx, d) == nil {
		return nil
	}
	body, err := src.OpenBlob(ctx, d)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = dst.putBlob(ctx, body)
	return err
}
