package adk

import (
	"google.golang.org/adk/v2/session"

	"github.com/convlog/convlog/eventlog"
)

// Services are the services of ADK over one log. They may be called concurrently, and by several
// processes. The log belongs to the caller, who closes it.
type Services struct {
	Sessions session.Service
}

// New returns the services over a log.
func New(log *eventlog.Log) Services {
	return Services{Sessions: &sessions{log: log}}
}
