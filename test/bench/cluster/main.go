// Command cluster measures, on the cluster that KUBECONFIG names and on which
// Updraft is installed, what a user waits for and where the time goes, and prints
// tables. It judges nothing: figures are of the machine that it runs on.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/updraft-dev/updraft/pkg/record"
)

const (
	systemNamespace = "updraft-system"
	// patience with one change, and with the functions' way to zero.
	patience = 3 * time.Minute
)

func main() {
	warm := flag.Int("warm", 10, "how many changes of each kind with functions that run")
	zero := flag.Int("zero", 10, "how many changes of each kind with every function at zero")
	many := flag.Int("many", 26, "how many Stacks at once; 0 for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, *warm, *zero, *many); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // the signal handler goes with the process
	}
}

func bench(ctx context.Context, warm, zero, many int) (err error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst, config.WarningHandler = 100, 200, rest.NoWarnings{}
	clients, err := record.NewClients(config)
	if err != nil {
		return err
	}
	made, err := clients.Core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "updraft-bench-"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	s := &stand{clients: clients, namespace: made.Name}
	defer func() {
		// The command's own context may have ended.
		if deleted := clients.Core.Namespaces().Delete(context.WithoutCancel(ctx), made.Name, metav1.DeleteOptions{}); err == nil {
			err = deleted
		}
	}()
	if err := s.program(ctx); err != nil {
		return err
	}
	results := map[string]map[string][]timeline{"warm": {}, "from zero": {}}
	defer func() { show(results) }() // of what there is, if it is stopped: from zero takes long
	// The node has the images then.
	if _, err := s.measure(ctx, "first", changes[0]); err != nil {
		return err
	}
	for _, state := range []struct {
		name  string
		tries int
	}{{"warm", warm}, {"from zero", zero}} {
		for i := range state.tries {
			stack := fmt.Sprintf("%s-%d", strings.ReplaceAll(state.name, " ", "-"), i)
			for _, change := range changes {
				if state.name != "warm" {
					if err := s.awaitZero(ctx); err != nil {
						return err
					}
				} else if i == 0 && change.name == changes[0].name {
					if _, err := s.measure(ctx, "wakes", changes[0]); err != nil { // wakes the functions
						return err
					}
				}
				t, err := s.measure(ctx, stack, change)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", state.name, change.name, err)
				}
				results[state.name][change.name] = append(results[state.name][change.name], t)
				fmt.Fprintf(os.Stderr, "%s, %s: %.1f s\n", state.name, change.name, t[ready].Seconds())
			}
		}
	}
	if many > 0 { // the last: it leaves the node busy
		took, err := s.manyAtOnce(ctx, many)
		if err != nil {
			return err
		}
		fmt.Printf("%d Stacks applied at once, from zero: all Ready after %.1f s\n\n", many, took.Seconds())
	}
	return nil
}

func show(results map[string]map[string][]timeline) {
	last := changes[len(changes)-1].name
	fmt.Printf("%s. Medians of %d (warm) and %d (from zero), in seconds since the write\n\n", time.Now().Format("2006-01-02"),
		len(results["warm"][last]), len(results["from zero"][last]))
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(table, strings.Join(cells, "\t")) }
	for _, change := range changes {
		row(change.name, "warm", "from zero")
		for _, step := range steps {
			w, z := median(results["warm"][change.name], step), median(results["from zero"][change.name], step)
			if w+z != "" {
				row("  "+string(step), w, z)
			}
		}
	}
	table.Flush()
	fmt.Printf("\nBeside what is aimed at, and the Pulumi Kubernetes Operator v2.9.0 on such a machine, whose pod for each Stack stays\n\n")
	row("", "warm", "aim", "from zero", "aim", "operator")
	for _, a := range aims {
		row(a.change+" → "+string(a.step), median(results["warm"][a.change], a.step), a.warm, median(results["from zero"][a.change], a.step), a.zero, a.operator)
	}
	table.Flush()
}

// aims are what a change is to take, in seconds, and what it takes upstream.
var aims = []struct {
	change               string
	step                 step
	warm, zero, operator string
}{
	{"first apply", started, "2.0", "5.0", "3.5"},
	{"first apply", ready, "4.0", "7.0", "7.9"},
	{"config change", ready, "4.0", "7.0", "10.0"},
	{"the same run again", ready, "3.2", "6.0", "3.2"},
}

// median of a step over all tries that have it.
func median(tries []timeline, s step) string {
	var all []time.Duration
	for _, t := range tries {
		if d, ok := t[s]; ok {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("%.1f", all[len(all)/2].Seconds())
}
