package flow

import (
	"context"
	"time"

	"github.com/convlog/convlog/event"
)

// Hook is called before and after each call of a model and of a tool: a guardrail, a budget, a
// redaction or a record. Each function may be nil. Functions are called concurrently.
//
// A function refuses the call with an error. It changes the call or the result through its
// pointer, which points to a copy: it replaces texts and lists, and writes into no bytes.
// Functions before a call run in the order of Options.Hooks, functions after it in reverse order.
// Update, StateOf, FromContext and Running.Add work inside a function, as inside a tool.
//
// Hooks run inside the effect of the call: after its intent is in the log, and before its result is
// recorded. The result has all decisions of the hooks. An execution of the turn after that gets
// the result from the log, and calls no hook. After a kill before that, nobody has seen a
// decision, and the class of the effect decides: if the call is made again, the hooks are called
// again. So are they for each attempt. Hence a hook may depend on clocks, files and servers.
//
// A refusal ends the effect with an *EffectError of the code refused, which matches ErrDenied. A
// function that panics or does not return in time ends it with the code hook. The error names the
// hook, and no attempt follows. Turn.Model returns the error. The error of a tool call is
// told to the model, as any error of a tool. The usage of an answer counts, also if a hook
// refuses it.
//
// The intent, the digest of the request and captured bodies show a call before its hooks. No
// hook is called if a person answers or denies the call. A child has the hooks of its own agent.
type Hook struct {
	// Name names the hook in errors. It must not be empty.
	Name string
	// BeforeModel gets the request, also the request of a compaction.
	BeforeModel func(ctx context.Context, r *Request) error
	// AfterModel gets the request as it was sent, and the answer.
	AfterModel func(ctx context.Context, r *Request, a *Response) error
	// BeforeTool gets the call. It can change the arguments, unless a person approved them.
	BeforeTool func(ctx context.Context, call *event.Part) error
	// AfterTool gets the call as it ran, and the result as the model gets it. It can change
	// Content and IsError. If the attempt failed, Content is the text of the error.
	AfterTool func(ctx context.Context, call event.Part, result *event.Part) error
	// Timeout is how long a function may take; 30 s if 0. The effect ends then, also if the
	// function goes on.
	Timeout time.Duration
	// StreamFirst gives clients the deltas of an answer before AfterModel is called. Without it, they get
	// the answer after AfterModel, each part at once.
	StreamFirst bool
}

const defaultHookTimeout = 30 * time.Second
