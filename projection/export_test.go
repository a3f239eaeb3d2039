package projection

// Buffered limits how many bytes of events a load keeps between the scan and the
// folding.
func Buffered(o Options, bytes int) Options {
	o.buffer = bytes
	return o
}
