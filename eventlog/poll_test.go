package eventlog

import "testing"

// A watcher that begins while the log closes starts no polling of the closed store.
func TestNoPollingAfterClose(t *testing.T) {
	log := Open(nil)
	h := log.acquire("s")
	defer log.release(h)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	leave := log.poll.join(h)
	if log.poll.stop != nil {
		t.Error("the closed log polls")
	}
	leave()
}
