package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// isPattern reports whether a path has the characters of a pattern.
func isPattern(path string) bool { return strings.ContainsAny(path, "*?[") }

// glob returns the paths that match a pattern, sorted. "*", "?" and "[…]" match as in
// path/filepath, and "**" matches any number of folders. As in a shell, "*" does not
// match a name that begins with a dot. No match is no error.
func glob(pattern string) ([]string, error) {
	pattern = filepath.Clean(pattern)
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	parts := strings.Split(pattern, string(filepath.Separator))
	fixed := 0
	for fixed < len(parts)-1 && !isPattern(parts[fixed]) {
		fixed++
	}
	root := strings.Join(parts[:fixed], string(filepath.Separator))
	if fixed > 0 && root == "" {
		root = string(filepath.Separator)
	}
	g := globber{parts: parts[fixed:]}
	err := g.walk(root)
	slices.Sort(g.found)
	return slices.Compact(g.found), err
}

// globber walks the folder before the first part of a pattern.
type globber struct {
	parts []string
	found []string
}

func (g *globber) walk(root string) error {
	start := root
	if start == "" {
		start = "."
	}
	return filepath.WalkDir(start+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // as in a shell, an unreadable path does not match
		}
		below, err := filepath.Rel(start, path)
		if err != nil || below == "." {
			return err
		}
		names := strings.Split(below, string(filepath.Separator))
		whole, more := matches(g.parts, names)
		if whole {
			g.found = append(g.found, filepath.Join(root, below))
		}
		if entry.IsDir() && !more {
			return fs.SkipDir
		}
		return nil
	})
}

// matches reports whether names match all parts, and whether names below them
// may.
func matches(parts, names []string) (whole, more bool) {
	switch {
	case len(names) == 0:
		rest := slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "**" })
		return len(rest) == 0, len(parts) > 0
	case len(parts) == 0:
		return false, false
	case parts[0] == "**":
		whole, more = matches(parts[1:], names)
		if hidden(names[0]) {
			return whole, more
		}
		w, m := matches(parts, names[1:])
		return whole || w, more || m
	}
	if ok, err := filepath.Match(parts[0], names[0]); err != nil || !ok || hidden(names[0]) && !hidden(parts[0]) {
		return false, false
	}
	return matches(parts[1:], names[1:])
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }
