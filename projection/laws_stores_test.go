//go:build !js

package projection_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
)

// Law 4: the same history gives the same states on all stores.
func TestStoresAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		script := garden.DrawScript.Draw(r, "script")
		var gardens []*garden.Garden
		for _, open := range garden.Backends {
			log := eventlog.Open(open(t.TempDir()))
			defer func() { _ = log.Close() }()
			gardens = append(gardens, garden.Plant(r, log, script))
		}
		a, b := gardens[0], gardens[1]
		garden.Same(r, "sessions", a.Names, b.Names)
		for _, name := range a.Names {
			garden.Same(r, "head of "+name, a.Head(name).Seq, b.Head(name).Seq)
			for at := range a.Head(name).Seq {
				va, xa := a.Load(name, projection.Options{At: at + 1})
				vb, xb := b.Load(name, projection.Options{At: at + 1})
				garden.Same(r, fmt.Sprintf("%s at %d", name, at+1), va, vb)
				garden.Same(r, "parts", xa.Parts, xb.Parts)
				garden.Same(r, "events read", xa.Events, xb.Events)
			}
		}
	})
}
