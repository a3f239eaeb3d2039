package projection_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

func TestBuiltinSnapshotAndTailAreAFullReplay(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for _, name := range l.Names {
			for at := range l.Head(name).Seq {
				want := l.States(name, projection.Options{At: at + 1, Replay: true})
				garden.Same(r, fmt.Sprintf("%s at %d", name, at+1), want, l.States(name, projection.Options{At: at + 1}))
			}
		}
	})
}

func TestBuiltinStatesDoNotDependOnBodies(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		before := map[string]map[string]string{}
		for _, name := range l.Names {
			before[name] = l.States(name, projection.Options{})
		}
		for _, name := range l.Names {
			if bodies := bodies(l.Garden, name); len(bodies) > 0 {
				_, err := erase.Redact(garden.Bg, l.Log, name, bodies, erase.RedactOptions{Reason: "bodies"})
				l.Allow(err)
			}
		}
		for _, name := range l.Names {
			garden.Same(r, name, before[name], l.States(name, projection.Options{}))
		}
	})
}
