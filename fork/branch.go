package fork

import (
	"context"

	"github.com/convlog/convlog/eventlog"
)

func newestOrphaned(ctx context.Context, log *eventlog.Log, session string, head int64) (int64, error) {
	return 0, ErrNothingOrphaned
}
