package stack

import (
	"testing"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

func literal(value string) pulumiv1.ResourceRef {
	return pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorLiteral, LiteralRef: &pulumiv1.LiteralRef{Value: value}}
}

func secretRef(namespace, name, key string) pulumiv1.ResourceRef {
	return pulumiv1.ResourceRef{
		SelectorType: pulumiv1.ResourceSelectorSecret,
		SecretRef:    &pulumiv1.SecretSelector{Namespace: namespace, Name: name, Key: key},
	}
}

func withEnv(name string, ref pulumiv1.ResourceRef) edit {
	return func(s *pulumiv1.Stack) {
		if s.Spec.EnvRefs == nil {
			s.Spec.EnvRefs = map[string]pulumiv1.ResourceRef{}
		}
		s.Spec.EnvRefs[name] = ref
	}
}

func withSecretRef(name string, ref pulumiv1.ResourceRef) edit {
	return func(s *pulumiv1.Stack) {
		if s.Spec.SecretRefs == nil {
			s.Spec.SecretRefs = map[string]pulumiv1.ResourceRef{}
		}
		s.Spec.SecretRefs[name] = ref
	}
}

var (
	fromEnv  = pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorEnv, Env: &pulumiv1.EnvSelector{Name: "HOME"}}
	fromFile = pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorFS, FileSystem: &pulumiv1.FSSelector{Path: "/etc/passwd"}}
)

func TestASpecThatCannotBeServedStalls(t *testing.T) {
	source := func(change edit) World {
		return inWorld(aStack(func(s *pulumiv1.Stack) { s.Spec.ProgramRef = nil }, change))
	}
	stalls := func(message string) outcome {
		return outcome{Action: Nothing, State: "Stalled/SpecInvalid", Message: "Invalid spec: " + message}
	}
	template := func(workspace, update string) World {
		return inWorld(aStack(func(s *pulumiv1.Stack) {
			if workspace != "" {
				s.Spec.WorkspaceTemplate = raw(workspace)
			}
			if update != "" {
				s.Spec.UpdateTemplate = raw(update)
			}
		}))
	}
	assess(t, map[string]assessment{
		"A git source without a repository": {
			world: source(func(s *pulumiv1.Stack) { s.Spec.GitSource = &pulumiv1.GitSource{Shallow: true} }),
			want:  stalls(`projectRepo: missing "projectRepo"`),
		},
		"A Flux source": {
			world: source(fluxed),
			want:  stalls("fluxSource: Flux sources are not served by this version of Updraft; use programRef"),
		},
		"A Program without a name": {
			world: source(func(s *pulumiv1.Stack) { s.Spec.ProgramRef = &pulumiv1.ProgramReference{} }),
			want:  stalls("programRef.name: must not be empty"),
		},
		"A variable from the operator's environment": {
			world: inWorld(aStack(withEnv("TOKEN", fromEnv))),
			want:  stalls(`envRefs[TOKEN]: ref type "Env" is deprecated; use Secret or Literal`),
		},
		"A variable from the operator's files": {
			world: inWorld(aStack(withEnv("TOKEN", fromFile))),
			want:  stalls(`envRefs[TOKEN]: ref type "FS" is deprecated; use Secret or Literal`),
		},
		"Configuration from the operator's files": {
			world: inWorld(aStack(withSecretRef("app:token", fromFile))),
			want:  stalls(`secretsRef[app:token]: ref type "FS" is deprecated; use Secret or Literal`),
		},
		"A ref of a type that is not known": {
			world: inWorld(aStack(withEnv("TOKEN", pulumiv1.ResourceRef{SelectorType: "Vault"}))),
			want:  stalls(`envRefs[TOKEN]: ref type "Vault" is not known; use Secret or Literal`),
		},
		"A ref that lacks its literal": {
			world: inWorld(aStack(withEnv("TOKEN", pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorLiteral}))),
			want:  stalls("envRefs[TOKEN]: type Literal needs the field literal"),
		},
		"A ref that lacks its secret": {
			world: inWorld(aStack(withSecretRef("token", pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorSecret}))),
			want:  stalls("secretsRef[token]: type Secret needs the field secret"),
		},
		"A Secret of another namespace, for a variable": {
			world: inWorld(aStack(withEnv("TOKEN", secretRef("kube-system", "token", "key")))),
			want:  stalls("envRefs[TOKEN]: cross-namespace refs are not allowed; put the Secret into the Stack's own namespace"),
		},
		"A Secret of another namespace, for configuration": {
			world: inWorld(aStack(withSecretRef("token", secretRef("kube-system", "token", "key")))),
			want:  stalls("secretsRef[token]: cross-namespace refs are not allowed; put the Secret into the Stack's own namespace"),
		},
		"Of several problems the first by name is told": {
			why:   "a message that depends on the order of a map flaps",
			world: inWorld(aStack(withEnv("B", fromEnv), withEnv("A", fromFile), withSecretRef("0", fromEnv))),
			want:  stalls(`envRefs[A]: ref type "FS" is deprecated; use Secret or Literal`),
		},
		"A workspaceTemplate with a field that is none": {
			world: template(`{"spec":{"imagee":"x"}}`, ""),
			want:  stalls(`workspaceTemplate: cannot decode: unknown field "spec.imagee"`),
		},
		"A workspaceTemplate with a field of its pod that is none": {
			world: template(`{"spec":{"podTemplate":{"spec":{"containers":[{"name":"pulumi","imagee":"x"}]}}}}`, ""),
			want:  stalls(`workspaceTemplate: cannot decode: unknown field "spec.podTemplate.spec.containers[0].imagee"`),
		},
		"An updateTemplate with a field that is none": {
			world: template("", `{"spec":{"paralel":4}}`),
			want:  stalls(`updateTemplate: cannot decode: unknown field "spec.paralel"`),
		},
		"A template of another form": {
			world: template(`[]`, ""),
			want:  stalls(`workspaceTemplate: cannot decode: json: cannot unmarshal array into Go value of type run.typedWorkspace`),
		},
		"A template with a value of another form": {
			world: template("", `{"spec":{"parallel":"four"}}`),
			want:  stalls(`updateTemplate: cannot decode: json: cannot unmarshal string into Go struct field UpdateSpec.spec.parallel of type int32`),
		},
		"A template with a directive of another form": {
			why:   "the library that merges panics on it",
			world: template(`{"spec":{"$retainKeys":[[]]}}`, ""),
			want:  stalls("workspaceTemplate: cannot merge: a directive of a strategic merge patch has the wrong form: runtime error: hash of unhashable type []interface {}"),
		},
		"No source at all": {
			world: source(func(*pulumiv1.Stack) {}),
			want:  stalls(sayNoSource),
		},
		"No source, but a pod that mounts its state": {
			world: source(func(s *pulumiv1.Stack) {
				s.Spec.WorkspaceTemplate = raw(`{"spec":{"podTemplate":{"spec":{"containers":[{"name":"pulumi","volumeMounts":[{"name":"state","mountPath":"/share/state"}]}]}}}}`)
			}),
			want: stalls(sayNoSource),
		},
		"A claim is withdrawn": {
			world: inWorld(aStack(claims(claimed), withEnv("TOKEN", fromEnv))),
			want: outcome{Action: Withdraw, State: "Stalled/SpecInvalid",
				Message: `Invalid spec: envRefs[TOKEN]: ref type "Env" is deprecated; use Secret or Literal`},
		},
	})
}

const sayNoSource = "no source: set programRef, or projectRepo and branch, or let an init container or a volume of the workspaceTemplate make /share/workspace"

func TestASourceMayBeOfTheTemplate(t *testing.T) {
	for name, template := range map[string]string{
		"An init container that makes it": `{"spec":{"podTemplate":{"spec":{"initContainers":[{"name":"extract","image":"mine"}]}}}}`,
		"A volume with the project":       `{"spec":{"podTemplate":{"spec":{"containers":[{"name":"pulumi","volumeMounts":[{"name":"project","mountPath":"/share/workspace"}]}]}}}}`,
		"A folder of the image":           `{"spec":{"local":{"dir":"/project"}}}`,
		"A Program of the template":       `{"spec":{"program":{"name":"web"}}}`,
		"A git repository":                `{"spec":{"git":{"url":"https://example.com/a.git","ref":"abc"}}}`,
	} {
		v := Assess(inWorld(aStack(func(s *pulumiv1.Stack) {
			s.Spec.ProgramRef, s.Spec.WorkspaceTemplate = nil, raw(template)
		}), atSource("")), noon)
		if v.Action != Claim {
			t.Errorf("%s: %s %v", name, v.Action, v.Status.Conditions)
		}
	}
}

func TestASpecThatCanBeServedHasNoProblem(t *testing.T) {
	for name, s := range map[string]*pulumiv1.Stack{
		"The least":                       aStack(),
		"A Secret of no namespace":        aStack(withEnv("TOKEN", secretRef("", "token", "key"))),
		"A Secret of the Stack's own":     aStack(withEnv("TOKEN", secretRef("team", "token", "key"))),
		"A literal":                       aStack(withSecretRef("token", literal("hunter2"))),
		"Git fields that say nothing":     aStack(func(s *pulumiv1.Stack) { s.Spec.GitSource = &pulumiv1.GitSource{} }),
		"A source that a destroy ignores": aStack(destroys, known, deleted, fluxed),
	} {
		if problem := Validate(s); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}
