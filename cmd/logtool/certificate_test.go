package main

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// A renewed certificate counts from the next connection on. While its files do not fit, the old one counts.
func TestRenewedCertificate(t *testing.T) {
	cert, key, _ := newCertificate(t, "log.example.org")
	newCert, newKey, _ := newCertificate(t, "log.example.org")
	c := certificate{cert: cert, key: key}
	got := func() []byte {
		t.Helper()
		pair, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Certificate[0]
	}
	before := got()
	minutes := 0
	replace := func(file, by string) {
		t.Helper()
		text, err := os.ReadFile(by)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		minutes++
		at := time.Now().Add(time.Duration(minutes) * time.Minute)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	replace(cert, newCert)
	if !bytes.Equal(got(), before) {
		t.Error("a certificate without its key counts")
	}
	replace(key, newKey)
	after := got()
	if bytes.Equal(after, before) {
		t.Error("the old certificate counts")
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got(), after) {
		t.Error("without its files, the certificate does not count")
	}
	missing := certificate{cert: cert, key: key}
	if _, err := missing.get(nil); err == nil {
		t.Error("a missing certificate is no error")
	}
}
