// Package modelapi has the rules of the APIs of model providers: names and ids of requests,
// and checks of whole requests. Renderers, clients and tests share it.
package modelapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// The names of the providers in messages of a log.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
)

// The longest ids of calls, and the longest names of tools.
const (
	MaxMessagesID   = 64
	MaxChatID       = 40
	MaxResponsesID  = 64
	maxMessagesName = 128
	maxOpenAIName   = 64
)

// The tools that Anthropic runs itself. The type of a result is the name of its tool and
// ResultSuffix.
const (
	WebSearch    = "web_search"
	ResultSuffix = "_tool_result"
)

// ServerTools are the tools that Anthropic runs itself and that a request can contain.
var ServerTools = []string{WebSearch, "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution"}

// IsServerID reports whether an id is valid for a call of a tool that Anthropic runs.
func IsServerID(id string) bool {
	return strings.HasPrefix(id, "srvtoolu_") && IsName(id, MaxMessagesID)
}

// AnthropicToolName returns the name of a tool in a request to Anthropic.
func AnthropicToolName(name string) string { return Name(name, maxMessagesName) }

// OpenAIToolName returns the name of a tool in a request to OpenAI.
func OpenAIToolName(name string) string { return Name(name, maxOpenAIName) }

// Name makes a valid name or id of s: 1 to limit letters, digits, "_" and "-". A
// valid s stays as it is. Any other s ends in digits of its hash, so different names
// stay different.
func Name(s string, limit int) string {
	if IsName(s, limit) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	tail := "_" + hex.EncodeToString(sum[:6])
	kept := strings.Map(func(r rune) rune {
		if nameRune(r) {
			return r
		}
		return '_'
	}, s)
	return kept[:min(len(kept), limit-len(tail))] + tail
}

// IsName reports whether s is a valid name.
func IsName(s string, limit int) bool {
	return s != "" && len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return !nameRune(r) })
}

func nameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// Blank reports whether a text is empty or white space: providers reject it.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }
