// Forward lets this machine's own loopback into the cluster's network, and
// nothing else: it listens on 127.0.0.1 where it was started, and dials in the
// network namespace of another process.
//
//	forward PID PORT=ADDRESS...
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: forward PID PORT=ADDRESS...")
	}
	namespace, err := os.Open("/proc/" + os.Args[1] + "/ns/net")
	if err != nil {
		log.Fatal(err)
	}
	failed := make(chan error)
	for _, pair := range os.Args[2:] {
		port, target, ok := strings.Cut(pair, "=")
		if !ok {
			log.Fatalf("want PORT=ADDRESS, got %q", pair)
		}
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:"+port)
		if err != nil {
			log.Fatal(err)
		}
		log.Printf("from %s to %s", listener.Addr(), target)
		go func() { failed <- serve(listener, namespace, target) }()
	}
	log.Fatal(<-failed)
}

func serve(listener net.Listener, namespace *os.File, target string) error {
	for {
		near, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			far, err := dial(namespace, target)
			if err != nil {
				log.Print(err)
				_ = near.Close()
				return
			}
			join(near.(*net.TCPConn), far)
		}()
	}
}

// dial makes a connection in another network namespace. A socket belongs to
// the namespace of the thread that makes it; the thread is never unlocked, so
// that it ends with its goroutine instead of serving others.
func dial(namespace *os.File, target string) (*net.TCPConn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{nil, fmt.Errorf("cannot enter the namespace: %w", err)}
			return
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(context.Background(), "tcp4", target)
		done <- result{conn, err}
	}()
	r := <-done
	if r.err != nil {
		return nil, r.err
	}
	return r.conn.(*net.TCPConn), nil
}

// join copies both ways, and passes on each side's end.
func join(a, b *net.TCPConn) {
	var both sync.WaitGroup
	pass := func(to, from *net.TCPConn) {
		if _, err := io.Copy(to, from); err != nil && !errors.Is(err, net.ErrClosed) {
			_ = to.Close()
		}
		_ = to.CloseWrite()
	}
	both.Go(func() { pass(a, b) })
	both.Go(func() { pass(b, a) })
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}
