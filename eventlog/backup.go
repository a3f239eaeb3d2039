package eventlog

import (
	"context"
	"fmt"
	"iter"
)

// Backup copies every session of src into dst, a store without sessions, while
// others write to src. It is Convert, with its errors, and promises:
//
//   - Each session is there as it was at one moment of the backup: whole appends
//     from its beginning on. Every event that was acknowledged before the backup
//     began is there; of those that came meanwhile, some. Sessions are not of
//     one and the same moment.
//   - A fork is there only with its parents, at least up to its fork point.
//   - Every blob that a line needs is there.
//   - Every line, hash and blob has been verified on the way. A session that does
//     not verify is left out and reported, and so are its forks; one whose last
//     append is damaged is copied up to there and reported.
//   - Nothing is redacted, removed or collected in src while it is copied.
//
// What nothing needs is not copied: unreferenced blobs, torn tails and copies
// that repair kept.
//
// A dst with sessions is ErrExists. It is a backup once the sequence has ended
// and dst has been closed without an error.
func Backup(ctx context.Context, dst, src *Log) iter.Seq2[Adopted, error] {
	return func(yield func(Adopted, error) bool) {
		for info, err := range dst.Sessions(ctx) {
			if err == nil {
				err = fmt.Errorf("the target has session %q: %w", info.ID, ErrExists)
			}
			yield(Adopted{}, fmt.Errorf("back up: %w", err))
			return
		}
		Convert(ctx, dst, src)(yield)
	}
}
