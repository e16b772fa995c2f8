package main

import (
	"github.com/updraft-dev/updraft/pkg/event"
)

// kind is a type of event.
type kind struct {
	eventType string
	// says is what it tells, as one sentence.
	says string
	// when is more about when it is sent, for the page.
	when string
	// about is the kind of object that it is about.
	about string
	// from are the functions that send it.
	from []string
	// ids are the forms of its id.
	ids []string
	// example of its data, and by that its Go type.
	example any
	// id, name and namespace of the example; "" is the namespace team.
	id, name, namespace string
}

const (
	fromStatus, fromStack = "updraft-status", "updraft-stack"

	exampleUpdate = "app-19a7c3f0b2d"
	exampleUID    = "5b0f6f0e-8d1c-4c58-9a55-1f0b1f2f6c3a"
	exampleLink   = "https://app.pulumi.com/acme/app/dev/updates/7"
)

var examplePush = event.Push{Repository: "git.example.com/acme/infra", Ref: "refs/heads/main"}

var exampleRun = event.Run{Update: exampleUpdate, Type: "up"}

// catalogue are the types that other systems may build on.
var catalogue = []kind{
	{
		eventType: event.TypeStackSucceeded, about: event.KindStack, from: []string{fromStatus}, ids: []string{"<update uid>/succeeded"},
		says: "An Update of the Stack succeeded",
		when: "Of a Stack with `spec.preview` it is the preview that succeeded: `type` tells. The destroy of a Stack that is being deleted is told by `dev.updraft.stack.deleted`.",
		example: event.StackSucceeded{Run: exampleRun, Counts: event.Counts{
			Changes: map[string]int64{"create": 2, "same": 5}, Permalink: exampleLink,
		}},
		id: exampleUID + "/succeeded", name: "app",
	},
	{
		eventType: event.TypeStackFailed, about: event.KindStack, from: []string{fromStatus}, ids: []string{"<update uid>/failed", "<update uid>/canceled"},
		says: "An Update of the Stack failed or was cancelled",
		when: "Each attempt is told. The last of them comes with `dev.updraft.stack.stalled`, in either order.",
		example: event.StackFailed{Run: exampleRun, State: "failed", Reason: "UpdateFailed", Counts: event.Counts{
			Changes: map[string]int64{"same": 5, "update": 1}, Permalink: exampleLink,
		}},
		id: exampleUID + "/failed", name: "app",
	},
	{
		eventType: event.TypeStackStalled, about: event.KindStack, from: []string{fromStatus, fromStack},
		ids:  []string{"<update uid>/stalled", "<stack uid>/stalled/<state>"},
		says: "The Stack needs a person, or something that it waits for outside",
		when: "It comes when the condition Stalled becomes true, becomes true for another reason, or stays true though the Stack was changed: after an Update, whose name it has then, " +
			"or before one could be made, as of a spec that is not valid.",
		example: event.StackStalled{Reason: "UpdateFailed", Update: exampleUpdate},
		id:      exampleUID + "/stalled", name: "app",
	},
	{
		eventType: event.TypeStackDrifted, about: event.KindStack, from: []string{fromStatus}, ids: []string{"<update uid>/drifted"},
		says: "Resources of the Stack were not as they were left, though nobody asked for a change",
		when: "A resync (`spec.continueResyncOnCommitMatch`) ran the generation, request and revision that ran last, and had something to do; or an Update of type refresh that was made for the Stack " +
			"found changes. With `spec.refresh` a resync looks at the resources themselves, without it only at what the state says of them. " +
			"A preview tells of no drift. [Decision 16](decisions/0016-what-drift-is.md) says why.",
		example: event.StackDrifted{Run: exampleRun, Resources: 1, Counts: event.Counts{
			Changes: map[string]int64{"same": 6, "update": 1}, Permalink: exampleLink,
		}},
		id: exampleUID + "/drifted", name: "app",
	},
	{
		eventType: event.TypeStackDeleted, about: event.KindStack, from: []string{fromStack}, ids: []string{"<stack uid>/deleted"},
		says:    "The Stack is let go of, with or without its resources",
		when:    "It is sent just before the finalizer comes off.",
		example: event.StackDeleted{Destroyed: true},
		id:      "0c1d8a0e-3b7f-4f86-8f0f-2f1f60f3f0d1/deleted", name: "app",
	},
	{
		eventType: event.TypeRunStarted, about: event.KindUpdate, from: []string{fromStatus}, ids: []string{"<update uid>/started"},
		says:    "The operation of an Update began",
		when:    "Of each Update, one that was made by hand too, once the Pulumi CLI has begun. One that ends before that has no such event.",
		example: event.RunStarted{Run: exampleRun, Stack: "app"},
		id:      exampleUID + "/started", name: exampleUpdate,
	},
	{
		eventType: event.TypeRunFinished, about: event.KindUpdate, from: []string{fromStatus}, ids: []string{"<update uid>/finished"},
		says: "The run of an Update ended",
		when: "Of each Update whose run a pod took, once that pod has ended.",
		example: event.RunEnded{Run: exampleRun, Stack: "app", State: "succeeded", Counts: event.Counts{
			Changes: map[string]int64{"create": 2, "same": 5}, Permalink: exampleLink,
		}},
		id: exampleUID + "/finished", name: exampleUpdate,
	},
	{
		eventType: event.TypePush, about: event.KindPush, from: []string{"webhook"}, ids: []string{"<name>/<time>"},
		says: "Somebody pushed to a repository that a webhook was set up for",
		when: "Sent by the gateway for each ref that a [webhook](webhooks.md) names, in the namespace of the installation. It only causes a look at the Stacks that follow the ref. " +
			"Repository and ref are those of the payload; nobody has asked the repository yet.",
		example: examplePush,
		id:      examplePush.Name() + "/dg3vf7k2m1c8", name: examplePush.Name(), namespace: "updraft-system",
	},
}
