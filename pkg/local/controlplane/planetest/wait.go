package planetest

import (
	"bytes"
	"log/slog"
	"testing"
	"time"
)

// Eventually asks until the answer is nil, and fails the test with the last one if that takes too long: a minute, which only a
// broken or very busy machine needs.
func Eventually(tb testing.TB, what string, ask func() error) {
	tb.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("waited for a minute: %s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Log writes into the test's log.
func Log(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(writer{tb}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type writer struct{ tb testing.TB }

func (w writer) Write(line []byte) (int, error) {
	w.tb.Helper()
	w.tb.Log(string(bytes.TrimSpace(line)))
	return len(line), nil
}
