package jetstream_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/erase"
)

// After a redaction no file of the servers has the digest of an erased body: a digest shows
// whether a guess of the body is right.
func TestDigestsOfErasedBlobs(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	log := openLog(t, jetstream.Options{Connect: servers.Connect})
	for _, body := range []string{"body 0", "body 1"} {
		ref, err := log.PutBlob(t.Context(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), suite.Image(ref), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	if holds(servers, "convlog", digestOf(0).Hex()) == "" {
		t.Error("no file has the digest of a stored blob")
	}
	if _, err := erase.Redact(t.Context(), log, "s", []int64{1}, erase.RedactOptions{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	wantErased(t, servers, 0)
}
