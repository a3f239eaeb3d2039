package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagUse is one flag of all commands.
type flagUse struct {
	letters, kinds map[string]bool // one each
	commands       []string
	usages         map[string]bool
}

// A flag has one letter and one kind of value in all commands. testdata/flags.txt lists the
// flags with their commands and their help, to compare the meanings. -update rewrites it.
func TestFlagsHaveOneMeaning(t *testing.T) {
	all := map[string]*flagUse{}
	letters := map[string]string{}
	everyCommand(func(_ *app, cmd *cobra.Command) {
		visit := func(f *pflag.Flag) {
			x := all[f.Name]
			if x == nil {
				x = &flagUse{letters: map[string]bool{}, kinds: map[string]bool{}, usages: map[string]bool{}}
				all[f.Name] = x
			}
			kind, usage := pflag.UnquoteUsage(f)
			x.letters[f.Shorthand], x.kinds[cmp.Or(kind, "bool")], x.usages[usage] = true, true, true
			x.commands = append(x.commands, strings.TrimPrefix(cmd.CommandPath(), "logtool "))
			if other := letters[f.Shorthand]; f.Shorthand != "" && other != "" && other != f.Name {
				t.Errorf("-%s is --%s and --%s", f.Shorthand, other, f.Name)
			}
			letters[f.Shorthand] = f.Name
		}
		cmd.LocalNonPersistentFlags().VisitAll(visit)
	})
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x := all[name]
		if name == "to" { // where to go: an event, or with resume a program
			delete(x.kinds, "program")
		}
		if len(x.letters) > 1 || len(x.kinds) > 1 {
			t.Errorf("--%s has the letters %q and the kinds %q", name, slices.Sorted(maps.Keys(x.letters)), slices.Sorted(maps.Keys(x.kinds)))
		}
		letter := strings.Join(slices.Collect(maps.Keys(x.letters)), "")
		if letter != "" {
			letter = " -" + letter
		}
		slices.Sort(x.commands)
		fmt.Fprintf(&table, "--%s%s %s: %s\n", name, letter, strings.Join(slices.Collect(maps.Keys(x.kinds)), "|"), strings.Join(slices.Compact(x.commands), ", "))
		for _, usage := range slices.Sorted(maps.Keys(x.usages)) {
			fmt.Fprintf(&table, "    %s\n", usage)
		}
	}
	if letters["n"] != "limit" {
		t.Errorf("-n is --%s, not --limit", letters["n"])
	}
	golden(t, filepath.Join("testdata", "flags.txt"), table.String())
}

// golden compares text with a file, or rewrites the file with -update.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs; -update rewrites it. It would be:\n%s", file, text)
	}
}
