package interop

import (
	"context"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// present counts the records whose events another import stored, after this import had
// read the session. The formats count them as new: they learn of it too late.
type present struct {
	mu            sync.Mutex
	imported, raw int
}

type presentKey struct{}

// presentIn is the present of an import; nil outside Found.Import.
func presentIn(ctx context.Context) *present {
	p, _ := ctx.Value(presentKey{}).(*present)
	return p
}

// add counts the records of a batch. Events of one record name the same place.
func (p *present) add(appends [][]event.Event) {
	if p == nil {
		return
	}
	type place struct{ line, offset int64 }
	imported := map[place]bool{}
	for _, events := range appends {
		for i := range events {
			value, _ := events[i].MetadataValue("origin")
			var o Origin
			if json.Unmarshal(value, &o) == nil {
				at := place{o.Line, o.Offset}
				imported[at] = imported[at] || !strings.Contains(string(events[i].Type), ":")
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range imported {
		if known {
			p.imported++
		} else {
			p.raw++
		}
	}
}

// correct moves the counted records of a result to Present.
func (p *present) correct(r *Result) {
	imported, raw := min(p.imported, r.Imported), min(p.raw, r.Raw)
	r.Imported -= imported
	r.Raw -= raw
	r.Present += imported + raw
}
