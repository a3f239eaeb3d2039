package gemini_test

import (
	"testing"

	"github.com/convlog/convlog/interop/gemini"
	"github.com/convlog/convlog/interop/internal/importtest"
)

func FuzzImport(f *testing.F) {
	importtest.Fuzz(f, gemini.Format{}, "f", tidesFile, logbookFile)
}
