package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/upkeep/verify"
)

func (p *printer) verified(v answers.Check, asJSON bool) error {
	if asJSON {
		return p.Value(v)
	}
	for _, d := range v.Defects {
		p.Printf("%s %s\n", p.Paint(term.Red, "damaged"), clean(d.String()))
	}
	if v.MoreDefects > 0 {
		p.Printf("%s session %q: %s more\n", p.Paint(term.Red, "damaged"), v.Session, count(v.MoreDefects, "defect"))
	}
	for _, note := range summarize(v.Notes) {
		p.Printf("%s %s: %s\n", p.Paint(term.Yellow, "note"), clean(cmp.Or(v.Session, "store")), clean(note))
	}
	if v.MoreNotes > 0 {
		p.Printf("%s %s: %s more\n", p.Paint(term.Yellow, "note"), clean(v.Session), count(v.MoreNotes, "note"))
	}
	return nil
}

// summarize makes one line for each kind of note, with a count and the first seqs.
func summarize(notes []eventlog.Defect) []string {
	const most = 5
	var kinds []string
	seqs := map[string][]string{}
	for _, n := range notes {
		kind := kindOf(n)
		if seqs[kind] == nil {
			kinds = append(kinds, kind)
		}
		seqs[kind] = append(seqs[kind], strconv.FormatInt(n.Seq, 10))
	}
	for i, kind := range kinds {
		if kind == verify.RuleTorn {
			kinds[i] = tornNote(notes)
			continue
		}
		at := seqs[kind]
		if at[0] == "0" { // of no event
			continue
		}
		kinds[i] = fmt.Sprintf("%s in %s: seq %s", kind, count(len(at), "event"), strings.Join(at[:min(len(at), most)], ", "))
		if len(at) > most {
			kinds[i] += ", …"
		}
	}
	return kinds
}

// kindOf is the kind of a note: a torn tail, a snapshot, a removed session, an effect of lost events, or
// a rule that the source of an import breaks.
func kindOf(n eventlog.Defect) string {
	switch {
	case n.Rule == verify.RuleTorn:
		return verify.RuleTorn
	case n.Rule == verify.RuleWatermark:
		return n.Path + ": " + n.Detail
	case n.Seq == 0 && (n.Rule == verify.RuleSnapshot || n.Rule == verify.RuleHistory):
		return n.Detail
	case n.Rule == verify.RuleSnapshot:
		return "a replay contradicts the digest of marks"
	case strings.Contains(n.Detail, "lost"):
		return "events that were lost leave " + n.Rule
	}
	if words := forgiven[n.Rule]; words != "" {
		return fmt.Sprintf("the source has %s (%s)", words, n.Rule)
	}
	return "the source breaks the rule " + n.Rule
}

// forgiven are the rules that the source of an import may break, in words.
var forgiven = map[string]string{
	"orphan_result":  "results of no call",
	"empty_message":  "messages that say nothing",
	"duplicate_call": "calls with the id of another",
}

func tornNote(notes []eventlog.Defect) string {
	i := slices.IndexFunc(notes, func(n eventlog.Defect) bool { return n.Rule == verify.RuleTorn })
	return fmt.Sprintf("%s byte %d: %s", notes[i].Path, notes[i].Offset, notes[i].Detail)
}

func (p *printer) verdict(all verifySum, compared, asJSON bool) error {
	if asJSON {
		_ = p.Value(all) // flush returns the error
		return p.Flush()
	}
	found := p.Paint(term.Green, "no damage")
	if compared {
		found += ", and all heads of the checkpoint are there"
	}
	if all.Defects > 0 {
		found = p.Paint(term.Red, all.found())
	}
	sessions := count(all.Sessions, "session")
	if all.notes { // ls does not count it
		sessions = count(all.Sessions-1, "session") + " and " + engine.StoreSession
	}
	p.Printf("%s, %s: %s\n", sessions, count(all.Events, "event"), found)
	return p.Flush()
}
