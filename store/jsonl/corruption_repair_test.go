package jsonl

import (
	"bytes"
	"slices"
	"testing"

	"github.com/convlog/convlog/internal/witness"
	"github.com/convlog/convlog/upkeep/repair"
)

// TestRepairOfCorruption repairs each row of the corruption table. The repair keeps
// every line that is still in the file, except lines of unfinished appends, and reports
// every other line as lost.
func TestRepairOfCorruption(t *testing.T) {
	p := newFixture(t)
	for _, row := range corruptions() {
		t.Run(row.name, func(t *testing.T) {
			p := *p
			p.TB = t
			p.restore()
			damaged := row.edit(&p)
			p.damage(damaged)
			m := p.Repair(t, p.open(), witness.Main)
			switch want := row.want(&p); {
			case m == nil:
				if want.kind != newer && want.kind != missing && want.forward+want.backward > 0 {
					t.Errorf("no repair, want %+v", want)
				}
			case want.kind == same, want.kind == older:
				if m.Action != repair.None || len(m.KeptSeqs) != want.forward {
					t.Errorf("%+v, want no repair", m)
				}
			case m.Action == repair.None:
				t.Errorf("no repair, want %+v", want)
			default:
				p.wantBackup(m, damaged)
			}
		})
	}
}

// wantBackup checks that the repair has kept the damaged bytes.
func (p *fixture) wantBackup(m *witness.RepairResult, damaged []byte) {
	p.Helper()
	for i, line := range p.lines {
		seq := int64(i + 1)
		at := int64(bytes.Index(damaged, bytes.TrimSpace(line)))
		stands := at >= 0 && (m.Torn.Bytes == 0 || at < m.Torn.Offset)
		if kept := slices.Contains(m.KeptSeqs, seq); stands && !kept {
			p.Errorf("seq %d at byte %d was not kept: %+v", seq, at, m)
		}
		if last := m.Head.Seq; !stands && seq <= last && !slices.Contains(m.KeptSeqs, seq) && !slices.Contains(m.LostSeqs, seq) {
			p.Errorf("seq %d is neither kept nor reported lost: %+v", seq, m)
		}
	}
}
