package files

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// printed are the lines of a file that a command prints, from number From on; From is 0 for
// a command that prints something else.
type printed struct {
	From int
	// whole says that it prints all lines from From to the end of the file, and numbered
	// that nl numbers them.
	whole, numbered bool
}

// shellSteps returns what a shell command does to files, as far as its text tells: it reads
// and writes plain names, and does not run substitutions, loops or scripts. A command that may
// change other files adds a step with Run.
func shellSteps(command, folder string) (all []step) {
	script := parseShell(command)
	sh := shell{folder: folder, alone: len(script) == 1}
	for _, c := range script {
		sh.run(c)
	}
	if sh.opaque {
		sh.steps = append(sh.steps, step{does: Run})
	}
	for i := range sh.steps {
		sh.steps[i].command = command
	}
	return sh.steps
}

// shell runs the commands of a script.
type shell struct {
	folder string
	alone  bool // the script has one command
	steps  []step
	opaque bool // a command may change files that it does not name
}

func (sh *shell) add(does Action, name string) *step {
	if !plain(name) || name == "" || name == "-" || strings.HasPrefix(name, "/dev/") {
		if !plain(name) && does != Read {
			sh.opaque = true
		}
		return &step{}
	}
	sh.steps = append(sh.steps, step{does: does, path: resolve(sh.folder, name)})
	return &sh.steps[len(sh.steps)-1]
}

// plain reports whether a word is a name and no pattern or substitution.
func plain(word string) bool { return !strings.ContainsAny(word, "$`*?[{") }

// run adds what one command does.
func (sh *shell) run(c simple) {
	words := c.words
	for len(words) > 0 && isAssignment(words[0]) {
		words = words[1:]
	}
	for len(words) > 1 && slices.Contains(prefixes, words[0]) {
		words = words[1:]
	}
	sh.redirects(c, words)
	if len(words) == 0 {
		return
	}
	name, rest := path.Base(words[0]), words[1:]
	if script, ok := scriptOf(words); ok {
		inner := shellSteps(script, sh.folder)
		for _, s := range inner {
			sh.opaque = sh.opaque || s.does == Run
			if s.does != Run {
				sh.steps = append(sh.steps, s)
			}
		}
		return
	}
	switch {
	case name == "cd" && len(rest) == 1 && plain(rest[0]):
		sh.folder = resolve(sh.folder, rest[0])
	case name == "apply_patch":
		sh.steps = append(sh.steps, patchSteps(strings.Join(append(rest, c.input), "\n"), sh.folder)...)
	default:
		sh.known(name, rest, c)
	}
}

// prefixes are commands that run the command after them.
var prefixes = []string{"sudo", "command", "env", "time", "nohup", "then", "do", "else", "!"}

// isAssignment reports whether a word sets a variable.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// redirects adds the files that a command writes by > and >>.
func (sh *shell) redirects(c simple, words []string) {
	for _, out := range c.outputs {
		s := sh.add(Write, out.name)
		if s.path == "" {
			continue
		}
		text, known := c.output(words)
		switch {
		case out.adds:
			s.does = Edit
			if known {
				s.adds = &text
			}
		case known:
			s.text = &text
		default:
			s.does = Edit // of unknown text
		}
	}
}

// output is the text that a command writes, if its words tell it.
func (c *simple) output(words []string) (text string, known bool) {
	if len(words) == 0 {
		return "", c.input == "" // > file
	}
	switch {
	case words[0] == "cat" && (len(words) == 1 || words[1] == "-") && c.heredoc:
		return c.input, c.literal
	case words[0] == "echo" && !c.raw && (len(words) == 1 || !strings.HasPrefix(words[1], "-")) && !strings.Contains(strings.Join(words, ""), `\`):
		return strings.Join(words[1:], " ") + "\n", true
	}
	return "", false
}

// known adds what a known command does with the files in its words. Any other command may
// change files.
func (sh *shell) known(name string, words []string, c simple) {
	options, names := optionsOf(words)
	switch {
	case name == "sed" || name == "perl":
		sh.sed(name, words, options, names)
	case name == "tee":
		for _, n := range names {
			sh.add(Edit, n)
		}
	case slices.Contains(readers, name):
		sh.read(name, words, names, c)
	case name == "rm" || name == "unlink":
		for _, n := range names {
			sh.add(Delete, n)
		}
		sh.opaque = sh.opaque || strings.ContainsAny(strings.Join(options, ""), "rR")
	case name == "mv" && len(names) == 2 && !strings.HasSuffix(names[1], "/"):
		if s := sh.add(Move, names[0]); s.path != "" {
			s.to = resolve(sh.folder, names[1])
			sh.opaque = sh.opaque || !plain(names[1])
		}
	case name == "cp" && len(names) == 2 && len(options) == 0 && !strings.HasSuffix(names[1], "/"):
		sh.add(Edit, names[1])
	case name == "touch":
	case name == "gofmt" && slices.Contains(options, "-w") || name == "prettier" && slices.Contains(options, "--write"):
		for _, n := range names {
			sh.add(Edit, n)
		}
	case name == "git":
		sh.git(words)
	case slices.Contains(harmless, name) && !slices.Contains(words, "-delete") && !slices.Contains(words, "-exec"):
	default:
		sh.opaque = true
	}
}

// readers are commands that print the files that they name.
var readers = []string{"cat", "head", "tail", "nl", "less", "more", "bat", "tac"}

// harmless are commands that change no file.
var harmless = []string{
	"ls", "rg", "grep", "egrep", "fgrep", "find", "fd", "wc", "pwd", "echo", "printf", "which", "whereis", "type", "test", "[", "true", "false",
	"sort", "uniq", "cut", "tr", "awk", "jq", "yq", "file", "stat", "du", "df", "tree", "date", "env", "printenv", "uname", "whoami", "id", "ps",
	"sleep", "diff", "cmp", "basename", "dirname", "realpath", "readlink", "column", "xxd", "od", "md5sum", "sha256sum", "shasum", "exit", "export",
	"set", "cd", "pushd", "popd", "fi", "done", "esac", "for", "if", "while", "gh", "curl", "kill", "pgrep", "lsof", "nproc", "hostname",
}

// read adds the files that a command prints.
func (sh *shell) read(name string, words, names []string, c simple) {
	for _, n := range names {
		if isNumber(n) { // head -n 20
			continue
		}
		s := sh.add(Read, n)
		if !sh.alone || len(names) != 1 || len(c.outputs) > 0 || s.path == "" {
			continue
		}
		switch {
		case name == "cat" && len(words) == 1:
			s.prints = printed{From: 1, whole: true}
		case name == "nl" && slices.Contains(words, "-ba"):
			s.prints = printed{From: 1, whole: true, numbered: true}
		}
	}
}

func isNumber(word string) bool {
	_, err := strconv.Atoi(word)
	return err == nil
}

// sed adds the files of sed and perl: read, or changed in place.
func (sh *shell) sed(name string, words, options, names []string) {
	inPlace := slices.ContainsFunc(options, func(o string) bool {
		return strings.HasPrefix(o, "-i") || strings.HasPrefix(o, "--in-place") || name == "perl" && strings.HasPrefix(o, "-p") && strings.Contains(o, "i")
	})
	names = withoutScript(words, slices.DeleteFunc(names, func(n string) bool { return n == "" })) // sed -i '' of macOS
	does := Read
	if inPlace {
		does = Edit
	}
	if name == "perl" && !inPlace {
		sh.opaque = true
		return
	}
	for _, n := range names {
		s := sh.add(does, n)
		if !inPlace && sh.alone && len(words) == 3 && words[0] == "-n" && s.path != "" {
			s.prints = sedLines(words[1])
		}
	}
}

// withoutScript removes the scripts of sed or perl from the names in its words: the words
// after -e, else the first name.
func withoutScript(words, names []string) []string {
	found := false
	for i, w := range words[:max(len(words)-1, 0)] {
		if strings.HasPrefix(w, "-") && strings.HasSuffix(w, "e") && !strings.HasPrefix(w, "--") {
			found = true
			if at := slices.Index(names, words[i+1]); at >= 0 {
				names = slices.Delete(slices.Clone(names), at, at+1)
			}
		}
	}
	if !found && len(names) > 0 {
		return names[1:]
	}
	return names
}

// sedLines are the lines that the script of sed -n prints: 3,20p.
func sedLines(script string) (p printed) {
	bounds, ok := strings.CutSuffix(script, "p")
	from, to, two := strings.Cut(bounds, ",")
	n, err := strconv.Atoi(from)
	if !ok || !two || err != nil {
		return p
	}
	if _, err := strconv.Atoi(to); err != nil && to != "$" {
		return p
	}
	return printed{From: n, whole: to == "$" && n == 1}
}

// reading are the commands of git that change no file of the working tree.
var reading = []string{
	"status", "diff", "log", "show", "branch", "add", "commit", "rev-parse", "ls-files", "blame", "remote", "fetch", "push", "config", "describe",
	"rev-list", "grep", "cat-file", "for-each-ref", "ls-tree", "shortlog", "tag", "merge-base", "reflog", "ls-remote", "name-rev", "show-ref", "check-ignore",
}

// git adds the files that a command of git changes.
func (sh *shell) git(words []string) {
	for len(words) > 1 && (words[0] == "-C" || words[0] == "-c") {
		words = words[2:]
	}
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		words = words[1:]
	}
	if len(words) == 0 || slices.Contains(reading, words[0]) {
		return
	}
	_, names := optionsOf(words[1:])
	switch {
	case words[0] == "mv" && len(names) == 2:
		if s := sh.add(Move, names[0]); s.path != "" {
			s.to = resolve(sh.folder, names[1])
		}
	case words[0] == "rm" && len(names) > 0:
		for _, n := range names {
			sh.add(Delete, n)
		}
	case slices.Contains([]string{"checkout", "restore"}, words[0]) && slices.Contains(words, "--"):
		for _, n := range words[slices.Index(words, "--")+1:] {
			sh.add(Edit, n)
		}
	default:
		sh.opaque = true
	}
}

// optionsOf splits words into options and names.
func optionsOf(words []string) (options, names []string) {
	for i, w := range words {
		if w == "--" {
			return options, append(names, words[i+1:]...)
		}
		if strings.HasPrefix(w, "-") && w != "-" {
			options = append(options, w)
		} else {
			names = append(names, w)
		}
	}
	return options, names
}

// shells are programs that run the script after -c.
var shells = []string{"bash", "sh", "zsh", "dash", "ksh"}

// scriptOf is the script of a shell: bash -lc SCRIPT.
func scriptOf(words []string) (script string, ok bool) {
	if len(words) < 3 || !slices.Contains(shells, path.Base(words[0])) {
		return "", false
	}
	for i, w := range words[1 : len(words)-1] {
		if strings.HasPrefix(w, "-") && strings.HasSuffix(w, "c") {
			return words[i+2], true
		}
	}
	return "", false
}
