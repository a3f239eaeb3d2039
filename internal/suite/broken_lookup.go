package suite

import (
	"context"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

type listsAll struct{ *memory.Store }

func (s *listsAll) List(ctx context.Context, _ eventlog.Part) iter.Seq2[eventlog.SessionInfo, error] {
	return s.Sessions(ctx)
}

type relatesNothing struct{ *memory.Store }

func (s *relatesNothing) Related(context.Context, string) iter.Seq2[eventlog.SessionInfo, error] {
	return func(func(eventlog.SessionInfo, error) bool) {}
}

type knowsNoUsers struct{ *memory.Store }

func (s *knowsNoUsers) BlobUsers(context.Context, []event.Digest) iter.Seq2[eventlog.BlobUser, error] {
	return func(func(eventlog.BlobUser, error) bool) {}
}
