package event

import (
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/sealed"
)

func init() {
	sealed.Of = func(e any) *line.Sealed { return &e.(*Event).line }
	sealed.Fill = func(e any, l *line.Line) { e.(*Event).fill(l) }
	sealed.Remember = func(e any) { e.(*Event).remember() }
}
