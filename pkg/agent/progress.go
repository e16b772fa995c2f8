package agent

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/events"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// progress is what the engine told while an operation went on.
type progress struct {
	// begun says that the engine has begun: no lock was in the way.
	begun bool
	// changes counts resources by operation.
	changes map[string]int64
	// errors are the engine's, each with the resource that it is about.
	errors []string
}

// watch gives a channel for the engine's events, and a function that ends the
// watch and tells what was seen. The channel is read until then, since the
// Automation API closes it only if the CLI came to sending anything.
func watch() (chan<- events.EngineEvent, func() progress) {
	channel, stop, stopped := make(chan events.EngineEvent), make(chan struct{}), make(chan struct{})
	var seen progress
	go func() {
		defer close(stopped)
		for {
			select {
			case e, open := <-channel:
				if !open {
					return
				}
				seen.see(e)
			case <-stop:
				return
			}
		}
	}()
	return channel, func() progress {
		close(stop)
		<-stopped
		return seen
	}
}

// see takes one event in.
func (p *progress) see(e events.EngineEvent) {
	if e.Error != nil {
		return
	}
	p.begun = true
	switch {
	case e.SummaryEvent != nil:
		p.changes = changesOf(e.SummaryEvent.ResourceChanges)
	case e.DiagnosticEvent != nil && e.DiagnosticEvent.Severity == "error":
		p.errors = append(p.errors, about(e.DiagnosticEvent.URN)+"error: "+plain(e.DiagnosticEvent.Message))
	case e.PolicyEvent != nil && e.PolicyEvent.EnforcementLevel == "mandatory" && len(e.PolicyEvent.Exceptions) == 0:
		p.errors = append(p.errors, fmt.Sprintf("%serror: policy %s of %s: %s", about(e.PolicyEvent.ResourceURN),
			e.PolicyEvent.PolicyName, e.PolicyEvent.PolicyPackName, plain(e.PolicyEvent.Message)))
	}
}

// about names a resource at the head of a line; "" for none.
func about(of string) string {
	if u := urn.URN(of); u.IsValid() {
		return fmt.Sprintf("%s (%s): ", u.Type(), u.Name())
	}
	return ""
}

// changesOf counts what there is.
func changesOf(summary map[apitype.OpType]int) map[string]int64 {
	changes := map[string]int64{}
	for op, count := range summary {
		if count > 0 {
			changes[string(op)] = int64(count)
		}
	}
	return changes
}

// explain gives the words for why an operation failed: the engine's own, which
// know the resource, and else what the CLI said.
func (p progress) explain(e ended) string {
	if text := joinErrors(p.errors); text != "" && !verdict.MatchString(text) {
		return text
	}
	if text := explain(e.stdout, e.stderr); text != "" {
		return text
	}
	return silence(e.code)
}
