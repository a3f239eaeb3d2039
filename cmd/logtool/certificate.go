package main

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

// certificate is a certificate in two files. It reads them again when they have changed, so that a
// renewed certificate needs no new start.
type certificate struct {
	cert, key string

	mu    sync.Mutex
	pair  *tls.Certificate
	times [2]time.Time // of the files when they were read
}

// get returns the certificate. If the new files cannot be read, it is the old one.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var times [2]time.Time
	for i, name := range []string{c.cert, c.key} {
		if info, err := os.Stat(name); err == nil {
			times[i] = info.ModTime()
		}
	}
	if c.pair != nil && times == c.times {
		return c.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	switch {
	case err == nil:
		c.pair, c.times = &pair, times
	case c.pair == nil:
		return nil, err
	}
	return c.pair, nil
}
