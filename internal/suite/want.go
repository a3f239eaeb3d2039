package suite

import (
	"errors"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/verify"
)

// WantAppendError checks that an append fails with want and changes nothing.
func (t *Env) WantAppendError(want error, l *eventlog.Log, session string, x eventlog.Expect, events ...event.Event) error {
	t.Helper()
	before := t.linesOrNone(l, session)
	_, err := l.Append(t.Ctx, session, x, events...)
	t.WantErr(want, err)
	if diff := cmp.Diff(before, t.linesOrNone(l, session)); diff != "" {
		t.Errorf("the rejected append changed session %q (-before +after):\n%s", session, diff)
	}
	return err
}

// WantErr checks that got matches want.
func (t *Env) WantErr(want, got error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

// WantEqual checks that two values are equal.
func (t *Env) WantEqual(what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Must fails the test on an error.
func (t *Env) Must(err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// WantMissing checks that a session does not exist.
func (t *Env) WantMissing(l *eventlog.Log, session string) {
	t.Helper()
	_, err := l.Head(t.Ctx, session)
	t.WantErr(eventlog.ErrNotFound, err)
}

// WantVerified checks that a session has no defects: crc, chain, seqs and appends.
func (t *Env) WantVerified(l *eventlog.Log, session string) {
	t.Helper()
	report, err := verify.Session(t.Ctx, l, session)
	t.Must(err)
	for _, d := range report.Defects {
		t.Errorf("session %q is damaged: %v", session, d)
	}
}

// WantConflict checks that err is a ConflictError with these heads.
func (t *Env) WantConflict(err error, expected, actual event.Head) {
	t.Helper()
	var c *eventlog.ConflictError
	if !errors.As(err, &c) || !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("got error %v, want a ConflictError", err)
		return
	}
	if c.Expected != expected || c.Actual != actual {
		t.Errorf("the conflict has expected %v, actual %v; want %v and %v", c.Expected, c.Actual, expected, actual)
	}
}

// WantErased checks that the store's data does not contain text. All handles must be
// closed.
func (t *Env) WantErased(text string) {
	t.Helper()
	if t.Harness.Holds != nil {
		if where := t.Harness.Holds(text); where != "" {
			t.Errorf("the erased content is in %s", where)
		}
	}
	t.eachFile(func(name string, body []byte) {
		if strings.Contains(string(body), text) {
			t.Errorf("the erased content is in %s", name)
		}
	})
}
