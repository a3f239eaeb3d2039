package main

import (
	"slices"
	"time"

	"github.com/convlog/convlog/runlog/stats"
)

// blockLength is the length of a block, as the plans of Claude count usage.
const blockLength = 5 * time.Hour

// noBlock is the name of events outside of blocks.
const noBlock = "outside of blocks"

// blocks sums the hours of sessions by block. A block begins at the full hour, in UTC, of the
// first answer or cost that no earlier block has. Its name is its begin, in local time.
func blocks(sessions []map[string]stats.Tally) grouped {
	names := blockNames(sessions)
	sums := grouped{}
	for _, hours := range sessions {
		of := map[string]stats.Tally{}
		for hour, t := range hours {
			name := names[hour]
			sum := of[name].Add(t)
			sum.Sessions = 1
			of[name] = sum
		}
		sums.add(of)
	}
	return sums
}

// blockNames are the names of the blocks of hours.
func blockNames(sessions []map[string]stats.Tally) map[string]string {
	spent := map[string]bool{} // hours; true if something was spent
	for _, hours := range sessions {
		for hour, t := range hours {
			spent[hour] = spent[hour] || !t.Spend.IsZero()
		}
	}
	var times []time.Time
	names := map[string]string{}
	for hour := range spent {
		at, err := time.Parse(time.RFC3339, hour)
		if err != nil {
			names[hour] = stats.Undated
			continue
		}
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	var begin time.Time
	for _, at := range times {
		hour := at.Format(time.RFC3339)
		if spent[hour] && at.Sub(begin) >= blockLength {
			begin = at
		}
		names[hour] = noBlock
		if at.Sub(begin) < blockLength {
			names[hour] = begin.Local().Format("2006-01-02 15:04")
		}
	}
	return names
}
