package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
)

// binaries measures each function's program: size, links, and the time from its
// start to its first answer.
func binaries(ctx context.Context, e *dev.Environment, _, dir string) ([]row, error) {
	folders, err := filepath.Glob("functions/*")
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, folder := range folders {
		name := filepath.Base(folder)
		program := filepath.Join(dir, name)
		if out, err := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", program, "./cmd/"+name).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot build %s: %w: %s", name, err, out)
		}
		info, err := os.Stat(program)
		if err != nil {
			return nil, err
		}
		links, err := exec.CommandContext(ctx, "go", "list", "-deps", "./cmd/"+name).Output()
		if err != nil {
			return nil, err
		}
		var starts []time.Duration
		for range tries {
			d, err := firstAnswer(ctx, e, program)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			starts = append(starts, d)
		}
		pulumi := "no"
		if bytes.Contains(links, []byte("pulumi/sdk")) {
			pulumi = "YES"
		}
		rows = append(rows, row{
			"function " + name,
			fmt.Sprintf("%s to its first answer, %.0f MB, %d packages", millis(slices.Min(starts)), float64(info.Size())/1e6, strings.Count(string(links), "\n")),
			fmt.Sprintf("best of %d starts; stripped; links the automation API: %s", tries, pulumi),
		})
	}
	return rows, nil
}

// firstAnswer starts the program and asks until it answers.
func firstAnswer(ctx context.Context, e *dev.Environment, program string) (time.Duration, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return 0, err
	}
	var said bytes.Buffer
	c := exec.CommandContext(ctx, program)
	c.Env = []string{fmt.Sprintf("PORT=%d", port), "BROKER_URL=" + e.BrokerURL, "API_SERVER_URL=" + e.Config.Host}
	c.Stdout, c.Stderr = &said, &said
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := c.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }() // it has answered, or never will
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d", port), http.NoBody)
	if err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			return time.Since(began), response.Body.Close()
		}
		time.Sleep(time.Millisecond)
	}
	return 0, errors.New("did not answer: " + said.String())
}
