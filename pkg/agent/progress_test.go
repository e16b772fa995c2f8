package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/events"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestWatch(t *testing.T) {
	diagnostic := func(urn, severity, message string) events.EngineEvent {
		return events.EngineEvent{EngineEvent: apitype.EngineEvent{
			DiagnosticEvent: &apitype.DiagnosticEvent{URN: urn, Severity: severity, Message: message}}}
	}
	cases := map[string]struct {
		events  []events.EngineEvent
		closed  bool
		want    progress
		explain string
	}{
		"Without events nothing has begun": {explain: "error: from the CLI"},
		"Resources are counted by operation": {
			events: []events.EngineEvent{{EngineEvent: apitype.EngineEvent{SummaryEvent: &apitype.SummaryEvent{
				ResourceChanges: map[apitype.OpType]int{apitype.OpCreate: 2, apitype.OpSame: 1, apitype.OpDelete: 0}}}}},
			closed:  true,
			want:    progress{begun: true, changes: map[string]int64{"create": 2, "same": 1}},
			explain: "error: from the CLI",
		},
		"Errors name their resource, and other diagnostics are left out": {
			events: []events.EngineEvent{
				diagnostic("", "debug", "Registering"), diagnostic("", "info#err", "hunter2"),
				diagnostic("urn:pulumi:dev::p::aws:s3/bucket:Bucket::logs", "error", "<{%fg 1%}>access denied<{%reset%}>\n\n"),
				diagnostic("", "error", "update failed\n"),
			},
			want: progress{begun: true, errors: []string{
				"aws:s3/bucket:Bucket (logs): error: access denied\n\n", "error: update failed\n"}},
			explain: "aws:s3/bucket:Bucket (logs): error: access denied",
		},
		"A mere verdict gives way to the CLI's words": {
			events:  []events.EngineEvent{diagnostic("", "error", "update failed\n")},
			want:    progress{begun: true, errors: []string{"error: update failed\n"}},
			explain: "error: from the CLI",
		},
		"A policy that must hold is an error": {
			events: []events.EngineEvent{
				{EngineEvent: apitype.EngineEvent{PolicyEvent: &apitype.PolicyEvent{EnforcementLevel: "advisory", Message: "x"}}},
				{EngineEvent: apitype.EngineEvent{PolicyEvent: &apitype.PolicyEvent{EnforcementLevel: "mandatory", Message: "no public buckets",
					PolicyName: "private", PolicyPackName: "house", ResourceURN: "urn:pulumi:dev::p::aws:s3/bucket:Bucket::logs"}}},
			},
			want:    progress{begun: true, errors: []string{"aws:s3/bucket:Bucket (logs): error: policy private of house: no public buckets"}},
			explain: "aws:s3/bucket:Bucket (logs): error: policy private of house: no public buckets",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			channel, seen := watch()
			for _, e := range c.events {
				channel <- e
			}
			if c.closed {
				close(channel)
			}
			got := seen()
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(progress{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if words := got.explain(ended{stderr: "error: from the CLI\n"}); words != c.explain {
				t.Errorf("explain() = %q, want %q", words, c.explain)
			}
		})
	}
}

func TestTheCLIIsToldAMessageAsItIs(t *testing.T) {
	got := cliArguments([]string{"up", `--message="say \"hi\"\n"`, "--message=plain"})
	want := []string{"--non-interactive", "up", "--message=say \"hi\"\n", "--message=plain"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
