package transfer

import (
	"context"
	"fmt"
	"iter"

	"github.com/convlog/convlog/eventlog"
)

// Backup copies every session of src into dst, which must have no sessions. Other
// programs may write to src at the same time. Backup yields and fails as Convert does.
// It promises:
//
//   - dst has each session as at one moment of the backup: whole appends from the first
//     event on, and all events that were acknowledged before the backup began. The
//     moments of two sessions may differ.
//   - dst has a fork only with its parents, at least up to the fork point.
//   - dst has every blob that a line needs.
//   - Every line, hash and blob was verified. A session that does not verify is skipped
//     and reported, and so are its forks. A session with a damaged last append is copied
//     up to the damage and reported.
//   - During the backup, nothing is redacted, removed or collected in src.
//
// Backup does not copy unreferenced blobs, torn tails, and the copies that repairs saved.
//
// If dst has sessions, the sequence ends with eventlog.ErrExists. dst is a complete
// backup after the sequence has ended and dst.Close has returned nil.
func Backup(ctx context.Context, dst, src *eventlog.Log) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for info, err := range dst.Sessions(ctx) {
			if err == nil {
				err = fmt.Errorf("the target has session %q: %w", info.ID, eventlog.ErrExists)
			}
			yield(Result{}, fmt.Errorf("back up: %w", err))
			return
		}
		Convert(ctx, dst, src, Options{ApplyRedactions: true})(yield)
	}
}
