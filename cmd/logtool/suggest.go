package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// renamed are the former names of commands that have another name now. Other commands keep
// their names in groups.
var renamed = map[string]string{"optree": "runlog --tree", "snapshots": "state list", "state": "state show"}

// unknownCommand rejects a word that is not a command below cmd. It names the command that
// had this name, or a command with a similar name.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	word := args[0]
	whole := strings.TrimPrefix(cmd.CommandPath()+" "+word, cmd.Root().Name()+" ")
	near := nearCommand(cmd, word)
	switch old := nowNamed(cmd, word); {
	case old != "" && !cmd.HasParent():
		return usagef("%q is now %q", word, old)
	case near != "":
		return usagef("unknown command %q (did you mean %s?)", whole, near)
	case old != "":
		return usagef("%q is now %q", cmd.CommandPath()+" "+word, old+" "+word)
	}
	return usagef("unknown command %q (see %s --help)", whole, cmd.CommandPath())
}

// nowNamed is the command line of a command that had the name word, or of the command that
// had the name of the group cmd.
func nowNamed(cmd *cobra.Command, word string) string {
	root := cmd.Root().Name() + " "
	if cmd.HasParent() {
		if now := renamed[cmd.Name()]; now != "" {
			return root + now
		}
		return ""
	}
	if now := renamed[word]; now != "" {
		return root + now
	}
	for _, group := range cmd.Commands() {
		for _, sub := range group.Commands() {
			if sub.Name() == word && !meant(cmd, word) {
				return sub.CommandPath()
			}
		}
	}
	return ""
}

// meant reports whether a command below cmd lists word as another word for its name.
func meant(cmd *cobra.Command, word string) bool {
	return slices.ContainsFunc(cmd.Commands(), func(sub *cobra.Command) bool { return slices.Contains(sub.SuggestFor, strings.ToLower(word)) })
}

// nearCommand is the command line of a command that word may mean; else empty.
func nearCommand(cmd *cobra.Command, word string) string {
	for _, sub := range cmd.Commands() {
		if slices.Contains(sub.SuggestFor, strings.ToLower(word)) {
			return sub.CommandPath()
		}
	}
	for _, within := range append([]*cobra.Command{cmd}, cmd.Commands()...) {
		if name := nearName(within, word); name != "" {
			return within.CommandPath() + " " + name
		}
	}
	return ""
}

// nearName is the name of a command below cmd that is most similar to word; else empty.
func nearName(cmd *cobra.Command, word string) string {
	distance := cmd.SuggestionsMinimumDistance
	defer func() { cmd.SuggestionsMinimumDistance = distance }()
	for cmd.SuggestionsMinimumDistance = 1; cmd.SuggestionsMinimumDistance <= min(2, len(word)/2); cmd.SuggestionsMinimumDistance++ {
		if near := cmd.SuggestionsFor(word); len(near) > 0 {
			return near[0]
		}
	}
	return ""
}

// flagError explains a wrong flag and suggests a similar one. A wrong word before the flag is
// the error to explain.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() {
		if _, rest, _ := cmd.Root().Find(a.args); firstWord(cmd, rest) != "" {
			return unknownCommand(cmd, []string{firstWord(cmd, rest)})
		}
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if near := nearFlag(cmd, unknown.GetSpecifiedName()); near != "" {
			return usagef("%v (did you mean --%s? see %s --help)", err, near, cmd.CommandPath())
		}
	}
	if kinds := a.traitsOf(cmd).args; len(kinds) > 0 && kinds[0] == textArg {
		return usagef("%v (put -- before a text that begins with -, as in %s -- -x; see %s --help)", err, cmd.CommandPath(), cmd.CommandPath())
	}
	return usagef("%v (see %s --help)", err, cmd.CommandPath())
}

// firstWord is the first argument that is no flag and no value of a flag.
func firstWord(cmd *cobra.Command, args []string) string {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			return args[i]
		}
		if f := cmd.Flags().Lookup(strings.TrimLeft(args[i], "-")); f != nil && f.NoOptDefVal == "" {
			i++
		}
	}
	return ""
}

// nearFlag is the flag of a command that name probably means: the flag that has
// this role in another command, or a flag with a similar name; else empty.
func nearFlag(cmd *cobra.Command, name string) string {
	for _, pair := range [][2]string{{"at", "to"}, {"to", "at"}, {"last", "limit"}, {"until", "to"}, {"by", "per"}, {"model", "for-model"}} {
		if rest, ok := strings.CutPrefix(name, pair[0]); ok && cmd.Flags().Lookup(pair[1]+rest) != nil {
			return pair[1] + rest
		}
	}
	var flags cobra.Command // the flags as its subcommands: cobra finds similar names
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	return nearName(&flags, name)
}
