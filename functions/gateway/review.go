package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/request"
)

// maxToken is the longest token that is reviewed, in bytes.
const maxToken = 16 << 10

// bearer is the token of a request.
func bearer(r *http.Request) (string, *request.Problem) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return "", request.Problemf(request.Unauthenticated, "The request has no token; send the header Authorization: Bearer <token>")
	}
	return token, nil
}

// authenticate asks the API server whose token this is. One for the gateway's
// audience is the rule: whoever it is shown to can do nothing else with it.
func (f *Function) authenticate(ctx context.Context, token string) (asked, *request.Problem) {
	status, problem := f.review(ctx, token, []string{f.Audience})
	if problem == nil && f.ClusterTokens && !status.Authenticated {
		status, problem = f.review(ctx, token, nil)
	}
	if problem != nil {
		return asked{}, problem
	}
	if !status.Authenticated || status.User.Username == "" {
		return asked{}, request.Problemf(request.Unauthenticated, "The token is not valid, has expired, or is not for the audience %s; make one with: kubectl create token <service account> --audience %s", f.Audience, f.Audience)
	}
	return status.User, nil
}

// review is authenticated only if the API server says that the token is for one
// of the audiences: an authenticator that does not know of audiences says of none.
func (f *Function) review(ctx context.Context, token string, audiences []string) (authenticationv1.TokenReviewStatus, *request.Problem) {
	review, err := f.Tokens.TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		f.Log.Error("Cannot review a token", "error", err.Error())
		return authenticationv1.TokenReviewStatus{}, request.Problemf(request.Unavailable, "The token cannot be reviewed now; send the event again later")
	}
	status := review.Status
	if len(audiences) > 0 && !slices.ContainsFunc(status.Audiences, func(a string) bool { return slices.Contains(audiences, a) }) {
		status.Authenticated = false
	}
	return status, nil
}

// authorize asks the API server whether the user may make each of the requests
// that kubectl would. One that they may not make refuses all.
func (f *Function) authorize(ctx context.Context, user asked, requests []request.Request) *request.Problem {
	may := map[authorizationv1.ResourceAttributes]bool{}
	for _, r := range requests {
		attributes := needed(r)
		if may[attributes] {
			continue
		}
		review, err := f.Access.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: &attributes, User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra(user),
			},
		}, metav1.CreateOptions{})
		if err != nil {
			f.Log.Error("Cannot review a right", "error", err.Error())
			return request.Problemf(request.Unavailable, "The right to do this cannot be reviewed now; send the event again later")
		}
		if !review.Status.Allowed || review.Status.Denied {
			return request.Problemf(request.Forbidden, "%s may not %s %s.%s in namespace %s, which %s of Stack %s needs; bind it to the ClusterRole updraft-edit there, or to a Role with that right",
				user.Username, attributes.Verb, attributes.Resource, attributes.Group, attributes.Namespace, r.Operation, r.Stack)
		}
		may[attributes] = true
	}
	return nil
}

// needed is what kubectl would ask the API server for. A request that creates has
// no name there either: a right to create by name does not exist, and one that is
// written so must not be found to be one here.
func needed(r request.Request) authorizationv1.ResourceAttributes {
	if r.Operation.Creates() {
		return authorizationv1.ResourceAttributes{
			Verb: "create", Group: autov1alpha1.SchemeGroupVersion.Group, Version: autov1alpha1.SchemeGroupVersion.Version, Resource: "updates", Namespace: r.Namespace,
		}
	}
	return authorizationv1.ResourceAttributes{
		Verb: "patch", Group: pulumiv1.SchemeGroupVersion.Group, Version: pulumiv1.SchemeGroupVersion.Version, Resource: "stacks", Namespace: r.Namespace, Name: r.Stack,
	}
}

func extra(user asked) map[string]authorizationv1.ExtraValue {
	all := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		all[key] = authorizationv1.ExtraValue(values)
	}
	return all
}
