package eventlog

import (
	"context"
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
)

func TestWithMetadata(t *testing.T) {
	ctx := context.Background()
	if got, err := metadataFrom(ctx); got != nil || err != nil {
		t.Errorf("plain context: %s, %v", got, err)
	}
	ctx = WithMetadata(ctx, map[string]any{"z": 1, "user": "u", "n": int64(9007199254740993)})
	inner := WithMetadata(WithMetadata(ctx, nil), map[string]any{"z": map[string]int{"b": 1, "a": 2}, "trace": "t"})
	for want, ctx := range map[string]context.Context{
		`{"n":9007199254740993,"user":"u","z":1}`:                         ctx,
		`{"trace":"t","z":{"a":2,"b":1},"n":9007199254740993,"user":"u"}`: inner,
	} {
		if got, err := metadataFrom(ctx); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestWithMetadataReportsWhatCannotBeEncoded(t *testing.T) {
	broken := WithMetadata(context.Background(), map[string]any{"f": func() {}})
	for name, ctx := range map[string]context.Context{
		"itself": broken,
		"inner":  WithMetadata(broken, map[string]any{"a": 1}),
	} {
		if value, err := metadataFrom(ctx); !errors.Is(err, event.Rule("metadata")) {
			t.Errorf("%s: %s, %v", name, value, err)
		}
	}
}
