package measure

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"k8s.io/apimachinery/pkg/api/meta"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// Update is what a write of an Update's status means. Times of objects are whole
// seconds.
func Update(before, after *autov1alpha1.Update) (all []observe.Measurement) {
	of := attribute.String("type", string(after.Spec.Type))
	namespace := semconv.K8SNamespaceName(after.Namespace)
	if before.Status.StartTime.IsZero() && !after.Status.StartTime.IsZero() {
		waited := after.Status.StartTime.Sub(after.CreationTimestamp.Time).Seconds()
		all = append(all, measured(observe.QueueTime, max(waited, 0), of))
	}
	if before.Settled() || !after.Settled() || after.Status.Result == nil {
		return all
	}
	result := attribute.String("result", string(after.Status.Result.State))
	labels := []attribute.KeyValue{namespace, of, result}
	if reason := after.FailedReason(); reason != "" {
		labels = append(labels, attribute.String("reason", string(reason)))
	}
	all = append(all, measured(observe.Updates, 1, labels...))
	if !after.Status.StartTime.IsZero() {
		took := after.Status.EndTime.Sub(after.Status.StartTime.Time).Seconds()
		all = append(all, measured(observe.UpdateDuration, max(took, 0), of, result))
	}
	if stack.Drift(after) > 0 {
		all = append(all, measured(observe.Drift, 1, namespace, of))
	}
	return all
}

// Phases is what a run tells of how long each of its phases took, in seconds. What
// is no phase is left out: it is a run's word.
func Phases(update *autov1alpha1.Update, seconds map[string]float64) (all []observe.Measurement) {
	for _, phase := range run.Phases {
		if took, told := seconds[phase]; told && took >= 0 && took < 1e7 {
			all = append(all, measured(observe.PhaseDuration, took, attribute.String("phase", phase), attribute.String("type", string(update.Spec.Type))))
		}
	}
	return slices.Clip(all)
}

// Stack is what a write of a Stack's status means.
func Stack(namespace string, before, after *pulumiv1.StackStatus) (all []observe.Measurement) {
	in := semconv.K8SNamespaceName(namespace)
	if last, claim := before.LastUpdate, after.CurrentUpdate; claim != nil && before.CurrentUpdate == nil && last != nil &&
		last.State == pulumiv1.FailedStackStateMessage && last.Generation == claim.Generation && last.ReconcileRequest == claim.ReconcileRequest {
		all = append(all, measured(observe.Retries, 1, in, attribute.String("reason", last.Reason)))
	}
	if stack.NewlyStalled(before, after) {
		reason := meta.FindStatusCondition(after.Conditions, pulumiv1.StalledCondition).Reason
		all = append(all, measured(observe.Stalls, 1, in, attribute.String("reason", reason)))
	}
	return all
}

func measured(metric observe.Metric, value float64, labels ...attribute.KeyValue) observe.Measurement {
	return observe.Measurement{Metric: metric, Value: value, Labels: labels}
}
