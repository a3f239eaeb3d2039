package flow

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ModelError reports that a call of a model over HTTP failed, or that no answer fits the
// JSON Schema of Ask (Code schema). Its methods RetryAfter and Permanent say whether
// another attempt helps.
type ModelError struct {
	Provider string
	// Status is the HTTP status; 0 if no server answered. It is 200 if the answer broke
	// off, or if the server reported the error in the middle of its answer.
	Status int
	// Code is the provider's word for the error, for example overloaded_error. Message
	// is its sentence.
	Code, Message string
	// RequestID is the provider's id of the request.
	RequestID string
	// Body is the body of a response with an error, up to 2 KiB. The key of the client
	// is replaced in Message and Body.
	Body string
	// Delay is the result of RetryAfter, Final the result of Permanent.
	Delay time.Duration
	Final bool
	// Cause is the error below, or nil.
	Cause error
}

func (e *ModelError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", e.Provider)
	if e.Status != 0 && e.Status != http.StatusOK {
		fmt.Fprintf(&b, "HTTP %d: ", e.Status)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, "%s: ", e.Code)
	}
	switch {
	case e.Message != "" && e.Cause != nil:
		fmt.Fprintf(&b, "%s: %v", e.Message, e.Cause)
	case e.Message != "":
		b.WriteString(e.Message)
	case e.Cause != nil:
		b.WriteString(e.Cause.Error())
	default:
		b.WriteString("the request failed")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Cause }

// RetryAfter is the delay that the server asks for; 0 if it asks for none.
func (e *ModelError) RetryAfter() time.Duration { return e.Delay }

// Permanent reports that the same request fails again.
func (e *ModelError) Permanent() bool { return e.Final }
