//go:build unix

package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
)

// trial measures one or more rows.
type trial struct {
	named bool // measured only if -run or -long asks for it
	rows  []row
	// measure returns a figure per row.
	measure func(ctx context.Context, b *bench) ([]figure, error)
}

// row is a line of the table: a measured operation, the operation it is compared with,
// and the bar for their ratio.
type row struct {
	name     string
	measured string
	against  string // empty: the measured value is compared with the bar
	unit     unit
	bar      bar
}

// unit is the unit of a row's figures.
type unit string

const (
	nanoseconds unit = "ns"
	perSecond   unit = "1/s"
	mebibytes   unit = "MiB/s"
	sizeInBytes unit = "B"
	count       unit = "count"
)

// bar bounds a ratio from above or below; the zero bar does not bound it.
type bar struct{ most, least float64 }

func atMost(ratio float64) bar  { return bar{most: ratio} }
func atLeast(ratio float64) bar { return bar{least: ratio} }

// zero is met only by the value 0.
var zero = bar{most: -1}

func (b bar) met(ratio float64) bool {
	switch {
	case b == zero:
		return ratio == 0
	case b.most != 0:
		return ratio <= b.most
	default:
		return ratio >= b.least
	}
}

func (b bar) String() string {
	switch {
	case b == zero:
		return "0"
	case b.most != 0:
		return fmt.Sprintf("<= %g", b.most)
	case b.least != 0:
		return fmt.Sprintf(">= %g", b.least)
	default:
		return ""
	}
}

// verdict returns the last column.
func (b bar) verdict(ratio float64) string {
	switch {
	case b == bar{}:
		return "-"
	case b.met(ratio):
		return "ok"
	default:
		return "SHORT"
	}
}

// figure is the result of a row, in the row's unit.
type figure struct {
	ours, theirs, ratio float64
	note                string // more about the figure
}

// single is the figure of a row without a comparison.
func single(value float64) figure { return figure{ours: value, ratio: value} }

// side is one side of a comparison. It runs once and returns the nanoseconds per event,
// or per other item that the row counts.
type side func(ctx context.Context) (float64, error)

// samples are the results of both sides, one per round.
type samples struct{ ours, theirs []float64 }

// pair runs both sides alternately: A B A B. The first round does not count.
func pair(ctx context.Context, rounds int, ours, theirs side) (samples, error) {
	var s samples
	for i := range rounds + 1 {
		for _, one := range []struct {
			run side
			to  *[]float64
		}{{ours, &s.ours}, {theirs, &s.theirs}} {
			runtime.GC()
			value, err := one.run(ctx)
			if err != nil {
				return samples{}, err
			}
			if i > 0 {
				*one.to = append(*one.to, value)
			}
		}
	}
	return s, nil
}

// times compares durations: medians, and the median of the rounds' ratios.
func (s samples) times() figure {
	ratios := make([]float64, len(s.ours))
	for i := range ratios {
		ratios[i] = s.ours[i] / s.theirs[i]
	}
	return figure{ours: median(s.ours), theirs: median(s.theirs), ratio: median(ratios)}
}

// rates compares items per second.
func (s samples) rates() figure {
	f := s.times()
	return figure{ours: 1e9 / f.ours, theirs: 1e9 / f.theirs, ratio: 1 / f.ratio}
}

// compare is pair for trials of one row.
func compare(ctx context.Context, rounds int, ours, theirs side, figureOf func(samples) figure) ([]figure, error) {
	s, err := pair(ctx, rounds, ours, theirs)
	if err != nil {
		return nil, err
	}
	return []figure{figureOf(s)}, nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// perItem returns the nanoseconds per item since start, for n items.
func perItem(start time.Time, n int) float64 {
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func (u unit) format(value float64) string {
	switch u {
	case nanoseconds:
		return duration(value)
	case perSecond:
		return scaled(value, 1000, "/s", " k/s", " M/s")
	case mebibytes:
		return scaled(value, 1024, " MiB/s", " GiB/s")
	case sizeInBytes:
		return scaled(value, 1<<20, " B", " MiB")
	default:
		return fmt.Sprintf("%.3g", value)
	}
}

func duration(ns float64) string { return scaled(ns, 1000, " ns", " µs", " ms", " s") }

// scaled formats value in the largest fitting unit; each unit is step times the
// previous one.
func scaled(value, step float64, units ...string) string {
	i := 0
	for ; i < len(units)-1 && value >= step; i++ {
		value /= step
	}
	return fmt.Sprintf("%.3g%s", value, units[i])
}

const columns = "%-28s %10s %10s %9s %9s  %-6s %s\n"

func printHeading() { fmt.Printf(columns, "row", "measured", "against", "ratio", "bar", "", "") }

func printRow(r row, f figure) error {
	against := r.unit.format(f.theirs)
	text := r.measured + ", against " + r.against
	if r.against == "" {
		against, text = "", r.measured
	}
	if f.note != "" {
		text += ": " + f.note
	}
	_, err := fmt.Printf(columns, r.name, r.unit.format(f.ours), against, fmt.Sprintf("%.3g", f.ratio),
		r.bar, r.bar.verdict(f.ratio), text)
	return err
}

// record is a row as JSON.
type record struct {
	Row      string  `json:"row"`
	Measured string  `json:"measured"`
	Against  string  `json:"against,omitzero"`
	Unit     unit    `json:"unit"`
	Ours     float64 `json:"ours"`
	Theirs   float64 `json:"theirs,omitzero"`
	Ratio    float64 `json:"ratio"`
	Note     string  `json:"note,omitzero"`
	Bar      string  `json:"bar,omitzero"`
	OK       bool    `json:"ok"`
}

func printJSON(r row, f figure) error {
	line, err := json.Marshal(record{
		Row: r.name, Measured: r.measured, Against: r.against, Unit: r.unit,
		Ours: f.ours, Theirs: f.theirs, Ratio: f.ratio, Note: f.note, Bar: r.bar.String(), OK: r.bar.met(f.ratio),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\n", line)
	return err
}
