package records

import (
	"slices"
	"strings"
)

// generatedPrefixes begin the messages that programs write in the user's name, where no
// member of the record says so.
var generatedPrefixes = []string{
	// Claude Code
	"<task-notification>", "<teammate-message", "<user-prompt-submit-hook>", "Base directory for this skill:",
	"Stop hook feedback:", "Operation stopped by hook:",
	// Codex
	"# AGENTS.md instructions for ", "# AGENTS.md instructions\n", "<recommended_plugins>", "<app-context>", "<user_instructions>", "<environment_context>", "<skill>", "<user_shell_command>",
	"<user_action>", "<turn_aborted>", "<subagent_notification>", "<subagents>", "<hook_prompt", "<goal_context>",
	"<codex_internal_context",
}

// IsGenerated reports whether a coding agent wrote a text in the user's name:
// notifications, instructions, surroundings, texts of skills and hooks.
func IsGenerated(text string) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc(generatedPrefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}
