package transfer

import (
	"context"
	"fmt"
	"iter"

	"github.com/convlog/convlog/eventlog"
)

// Backup copies every session of src into dst, a store without sessions, while
// others write to src. It is Convert, with its errors, and promises:
//
//   - Each session is as it was at one moment of the backup: whole appends from its
//     beginning on, with every event that was acknowledged before the backup began.
//     Sessions are not of one and the same moment.
//   - A fork is there only with its parents, at least up to its fork point.
//   - Every blob that a line needs is there.
//   - Every line, hash and blob was verified on the way. A session that does not
//     verify is skipped and reported, and so are its forks; one whose last append is
//     damaged is copied up to there and reported.
//   - Nothing is redacted, removed or collected in src meanwhile.
//
// Unreferenced blobs, torn tails and the copies that repairs saved are not copied.
//
// A dst with sessions is eventlog.ErrExists. dst is a backup once the sequence has
// ended and dst was closed without an error.
func Backup(ctx context.Context, dst, src *eventlog.Log) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for info, err := range dst.Sessions(ctx) {
			if err == nil {
				err = fmt.Errorf("the target has session %q: %w", info.ID, eventlog.ErrExists)
			}
			yield(Result{}, fmt.Errorf("back up: %w", err))
			return
		}
		Convert(ctx, dst, src)(yield)
	}
}
