package logtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// testClocks appends and redacts with clocks of all kinds.
func testClocks(t *env) {
	year := func(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }
	for i, clock := range [][]time.Time{
		{{}, {}}, {year(1969), year(1)}, {year(9999), year(9999)}, {year(2026), year(2000)},
		{year(10_000), year(10_000)}, {year(11_000), year(2026)}, {year(-1), year(0)}, {time.UnixMilli(1<<63 - 1), {}},
	} {
		calls := 0
		now := func() time.Time {
			calls++
			return clock[min(calls/4, 1)]
		}
		t.clock(fmt.Sprint("s", i), now)
	}
}

// clock uses a session of a log with a clock.
func (t *env) clock(session string, now func() time.Time) {
	t.Helper()
	t.Append(t.Main(), session, eventlog.New(), suite.User("hello"))
	l := t.LogOver(t.Store(), eventlog.Options{Now: now})
	for range 3 {
		e := suite.Note(1)
		e.ID = [16]byte{}
		_, err := l.Append(t.Ctx, session, eventlog.Any(), e)
		t.wantClockError(err)
	}
	if _, ok := eventlog.As[eventlog.Eraser](t.Store()); ok {
		_, err := erase.Redact(t.Ctx, l, session, []int64{1}, erase.RedactOptions{Reason: "test"})
		t.wantClockError(err)
	}
	report, err := verify.Session(t.Ctx, t.Main(), session)
	t.Must(err)
	for _, d := range report.Defects {
		t.Errorf("session %q is damaged: %v", session, d)
	}
}

func (t *env) wantClockError(err error) {
	t.Helper()
	if err != nil && !errors.Is(err, event.Rule("timestamp")) {
		t.Errorf("got error %v, want ErrInvalidTimestamp or none", err)
	}
}
