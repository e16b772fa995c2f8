// Probe is the program in the pods that prove the cluster: it serves, and logs
// each event that it is sent; or it looks around, since its image has no shell.
//
//	probe                        serve on $PORT
//	probe lookup NAME            resolve a name
//	probe get URL                fetch a URL
//	probe send URL TYPE KEY=VAL  send a CloudEvent with such extensions
//	probe write FILE TEXT        write a file
//	probe read FILE              read a file
//	probe id                     tell who it runs as
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	if len(os.Args) < 2 {
		if err := serve(); err != nil {
			log.Fatal(err)
		}
		return
	}
	args := slices.Concat(os.Args[2:], []string{"", ""})
	if err := look(os.Args[1], args); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve() error {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if kind := r.Header.Get("Ce-Type"); kind != "" {
			log.Printf("event %s id %s name %q", kind, r.Header.Get("Ce-Id"), r.Header.Get("Ce-Name"))
			w.WriteHeader(http.StatusAccepted)
			return
		}
		host, _ := os.Hostname()
		fmt.Fprintf(w, "hello from %s\n", host)
	})
	server := &http.Server{Addr: ":" + cmp.Or(os.Getenv("PORT"), "8080"), ReadHeaderTimeout: time.Minute}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.Background())
	}()
	log.Printf("listening on %s", server.Addr)
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func look(what string, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	switch what {
	case "lookup":
		addresses, err := net.DefaultResolver.LookupHost(ctx, args[0])
		fmt.Println(strings.Join(addresses, " "))
		return err
	case "get":
		return request(ctx, http.MethodGet, args[0], nil)
	case "send":
		header := http.Header{
			"Ce-Specversion": {"1.0"}, "Ce-Type": {args[1]}, "Ce-Source": {"probe"},
			"Ce-Id": {fmt.Sprint(time.Now().UnixNano())},
		}
		for _, extension := range args[2:] {
			if key, value, ok := strings.Cut(extension, "="); ok {
				header.Set("Ce-"+key, value)
			}
		}
		return request(ctx, http.MethodPost, args[0], header)
	case "write":
		return os.WriteFile(args[0], []byte(args[1]+"\n"), 0o644)
	case "read":
		content, err := os.ReadFile(args[0])
		fmt.Print(string(content))
		return err
	case "id":
		fmt.Println("uid", os.Getuid(), "gid", os.Getgid())
		return nil
	}
	return fmt.Errorf("unknown: %s", what)
}

func request(ctx context.Context, method, url string, header http.Header) error {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	if header != nil {
		r.Header = header
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	fmt.Println(response.Status)
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
