package written

import "strings"

// ClaudeFolder is the name that Claude Code gives to the folder for the sessions of a working
// directory.
func ClaudeFolder(cwd string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, cwd)
}
