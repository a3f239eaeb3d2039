package pi_test

import (
	"testing"

	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/pi"
)

func TestFileWithoutHeader(t *testing.T) {
	importtest.NoHeader(t, pi.Format{}, "2026-03-01T10-00-00-000Z_orig.jsonl", original(), "orig", "orig")
}
