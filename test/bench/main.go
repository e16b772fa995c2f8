// Command bench measures what a user waits for and what an idle Stack costs, and
// prints a table. It judges nothing: figures are of the machine that it runs on.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"
	"time"

	"k8s.io/klog/v2"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/pkg/local/pods"
)

// row is one line of the table.
type row struct{ what, figure, how string }

func main() {
	if len(os.Args) > 1 && os.Args[1] == dev.PodSupervisor {
		os.Exit(pods.Supervise(os.Args[2:]))
	}
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // watches that end with their environment
	if err := bench(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context) error {
	bin, err := filepath.Abs(".bin")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "updraft-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	rows, err := measure(ctx, bin, dir)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d cores, %s\n\n", runtime.GOARCH, runtime.NumCPU(), time.Now().Format("2006-01-02"))
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", r.what, r.figure, r.how); err != nil {
			return err
		}
	}
	return table.Flush()
}

func measure(ctx context.Context, bin, dir string) ([]row, error) {
	began := time.Now()
	e, err := dev.Start(ctx, dev.Options{Bin: bin, Dir: filepath.Join(dir, "state")})
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.Stop() }() // the figures are had
	rows := []row{{"updraft dev: start to ready", seconds(time.Since(began)), "one start, all watches open and one sweep run"}}
	for _, part := range []func(context.Context, *dev.Environment, string) ([]row, error){applyToReady, idleLook} {
		more, err := part(ctx, e, bin)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	for _, part := range []func(context.Context, *dev.Environment, string, string) ([]row, error){traced, binaries} {
		more, err := part(ctx, e, bin, dir)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
