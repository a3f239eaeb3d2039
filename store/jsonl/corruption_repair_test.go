package jsonl

import (
	"bytes"
	"slices"
	"testing"

	"github.com/convlog/convlog/eventlog/logtest"
	"github.com/convlog/convlog/upkeep/repair"
)

// TestRepairOfCorruption repairs what the table damages. Every line that still
// stands in the file is kept, unless it is of an append that never happened, and
// every other is known to be lost.
func TestRepairOfCorruption(t *testing.T) {
	p := newPatient(t)
	for _, row := range corruptions() {
		t.Run(row.name, func(t *testing.T) {
			p := *p
			p.TB = t
			p.heal()
			damaged := row.edit(&p)
			p.damage(damaged)
			m := p.Repair(t, p.open(), logtest.SampleMain)
			switch want := row.want(&p); {
			case m == nil:
				if want.kind != newer && want.kind != gone && want.shown+want.behind > 0 {
					t.Errorf("nothing was repaired, want %+v", want)
				}
			case want.kind == same, want.kind == older:
				if m.Action != repair.None || len(m.KeptSeqs) != want.shown {
					t.Errorf("%+v, want nothing to be repaired", m)
				}
			case m.Action == repair.None:
				t.Errorf("nothing to be repaired, want %+v", want)
			default:
				p.kept(m, damaged)
			}
		})
	}
}

// kept checks that a repair kept what there was to be kept.
func (p *patient) kept(m *logtest.RepairResult, damaged []byte) {
	p.Helper()
	for i, line := range p.lines {
		seq := int64(i + 1)
		at := int64(bytes.Index(damaged, bytes.TrimSpace(line)))
		stands := at >= 0 && (m.Torn.Bytes == 0 || at < m.Torn.Offset)
		if kept := slices.Contains(m.KeptSeqs, seq); stands && !kept {
			p.Errorf("seq %d stands at byte %d and was not kept: %+v", seq, at, m)
		}
		if last := m.Head.Seq; !stands && seq <= last && !slices.Contains(m.KeptSeqs, seq) && !slices.Contains(m.LostSeqs, seq) {
			p.Errorf("seq %d is neither kept nor lost: %+v", seq, m)
		}
	}
}
