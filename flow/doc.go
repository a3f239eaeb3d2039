// Package flow runs durable agents: turns of a conversation whose effects happen once,
// although the process may be killed at any instant.
package flow
