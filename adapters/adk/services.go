package adk

import (
	"google.golang.org/adk/v2/artifact"
	"google.golang.org/adk/v2/memory"
	"google.golang.org/adk/v2/session"

	"github.com/convlog/convlog/eventlog"
)

// Services are the services of ADK over one log. They may be called concurrently, and by several
// processes. The log belongs to the caller, who closes it.
type Services struct {
	Sessions  session.Service
	Artifacts artifact.Service
	Memory    memory.Service
}

// New returns the services over a log.
func New(log *eventlog.Log) Services {
	s := &sessions{log: log}
	return Services{Sessions: s, Artifacts: &artifacts{s}, Memory: &memories{s}}
}
