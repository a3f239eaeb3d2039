package render

import "errors"

// ErrAnswer reports a value that is not an answer of a provider.
var ErrAnswer = errors.New("not an answer of the API")
