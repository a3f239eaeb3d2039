package sqlite

import (
	"database/sql/driver"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/witness"
	"github.com/convlog/convlog/upkeep/repair"
)

// TestRepairOfCorruption repairs the damage of the corruption table. The repair keeps
// every readable line of the session and reports every other line as lost.
func TestRepairOfCorruption(t *testing.T) {
	p := newFixture(t)
	for _, row := range corruptions {
		t.Run(row.name, func(t *testing.T) {
			p := *p
			p.TB = t
			p.put(p.file)
			p.sql(func(c *conn) error {
				_, err := c.exec(row.change, p.key)
				return err
			})
			readable := p.readableSeqs()
			if row.want.kind == bodiless {
				readable = slices.DeleteFunc(readable, func(seq int64) bool { return seq == row.want.seq })
			}
			m := p.Repair(t, p.open(), witness.Main)
			switch {
			case m == nil:
				if row.want.kind != absent && row.want.kind != newer && len(readable) > 0 {
					t.Errorf("the repair did nothing, but seqs %v are readable", readable)
				}
			case m.Action == repair.None:
				if row.want.kind != whole && row.want.kind != occupied && row.want.kind != untyped {
					t.Errorf("found nothing to repair, want %+v", row.want)
				}
			default:
				p.checkRepair(m, readable)
			}
		})
	}
}

// readableSeqs returns the seqs of the readable lines.
func (p *fixture) readableSeqs() (seqs []int64) {
	p.Helper()
	p.sql(func(c *conn) error {
		return c.each(func(row []driver.Value) {
			line, _ := row[0].([]byte)
			if e, err := event.Parse(line, witness.Main); err == nil {
				seqs = append(seqs, e.Seq)
			}
		}, 1, `SELECT line FROM events WHERE session = ?`, p.key)
	})
	return seqs
}

func (p *fixture) checkRepair(m *witness.RepairResult, readable []int64) {
	p.Helper()
	for seq := int64(1); seq <= m.Head.Seq && seq <= all; seq++ {
		if slices.Contains(m.KeptSeqs, seq) == slices.Contains(m.LostSeqs, seq) {
			p.Errorf("seq %d: kept %v, lost %v", seq, m.KeptSeqs, m.LostSeqs)
		}
	}
	for _, seq := range readable {
		if !slices.Contains(m.KeptSeqs, seq) {
			p.Errorf("seq %d is readable and was not kept: %+v", seq, m)
		}
	}
}
