package inspect

var ErrTooLarge = errTooLarge
