package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what is wrong with the flags of a command, and which flag was
// perhaps meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if near := nearFlag(cmd, unknown.GetSpecifiedName()); near != "" {
			return usagef("%v (did you mean --%s? see %s --help)", err, near, cmd.CommandPath())
		}
	}
	if _, args, _ := strings.Cut(cmd.Use, " "); strings.HasPrefix(args, "TEXT") {
		return usagef("%v (a text that begins with - stands behind --, as in %s -- -x; see %s --help)", err, cmd.CommandPath(), cmd.CommandPath())
	}
	return usagef("%v (see %s --help)", err, cmd.CommandPath())
}

// nearFlag is the flag of a command that is most like name: the one that another
// command has in its place, or one that is spelled alike; empty if none is.
func nearFlag(cmd *cobra.Command, name string) (near string) {
	for _, pair := range [][2]string{{"at", "to"}, {"to", "at"}, {"last", "limit"}, {"limit", "last"}} {
		if rest, ok := strings.CutPrefix(name, pair[0]); ok && cmd.Flags().Lookup(pair[1]+rest) != nil {
			return pair[1] + rest
		}
	}
	least := 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); d < least && d < len(name) && !f.Hidden {
			near, least = f.Name, d
		}
	})
	return near
}

// distance is how many characters must be changed, added or left out to make one
// word of another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		above := row[0]
		row[0] = i + 1
		for j := range b {
			cost := above
			if a[i] != b[j] {
				cost++
			}
			above = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
